/** Top of the panel: which run and branch, how it stands, what it cost, what can be done. */
import * as React from 'react';
import { type IActions, RUN_DEEDS } from '../actions';
import { branchSentences, branchText, isUntouched } from '../branches';
import { count, itemState, money, moment, runState, spentText } from '../format';
import { sums } from '../model';
import type { IRunItem } from '../shapes';
import type { Store } from '../store';
import { VIEWS } from '../tokens';
import { Branch, leadsOn } from './branch';
import { Cancelled, CancelRun, Undone } from './cancelling';
import { Progress } from './progress';
import { Decide } from './settle';
import { SendSignal } from './signal';
import { goTo } from './waiting';
import { Button, State, useWords } from './words';

interface IHeadProps {
  store: Store;
  actions: IActions;
}

export function Pickers({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const branches = store.detail?.branches ?? [];
  const shown = store.branchItem;
  return (
    <div className="jp-Durable-pickers">
      <select
        aria-label={words.__('Run')}
        value={store.run}
        onChange={event => store.choose(event.target.value)}
      >
        {store.listed.map(run => (
          <option key={run.run} value={run.run}>
            {[run.name, itemState(run, words).word].join(' · ')}
          </option>
        ))}
      </select>
      {branches.length > 1 && (
        <select
          aria-label={words.__('Branch')}
          title={
            shown ? [branchText(shown, store.item, words), ...branchSentences(shown, words)].join('\n') : ''
          }
          value={store.shown}
          onChange={event => store.choose(store.run, event.target.value)}
        >
          {branches.map(branch => (
            <option key={branch.branch} value={branch.branch}>
              {branchText(branch, store.item, words)}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

export function Head({ store, actions }: IHeadProps): JSX.Element {
  const words = useWords();
  const item = store.item;
  const page = store.history.page;
  const totals = page?.totals;
  const sum = React.useMemo(() => sums(store.history), [store.history.version, store.history.rows]);
  const branch = store.detail?.branches.find(each => each.branch === store.shown);
  const status = branch?.status ?? item?.status;
  // Without buttons it is only said, of whatever notebook.
  const again = store.listed.filter(
    run => (run.here || !actions.resume) && store.canGoOn(run) && !(run === item && leadsOn(store))
  );
  const newest = item !== null && store.shown === item.branch;
  const state = newest ? itemState(item, words) : status && runState(status, words);
  const counts = [
    sum.replayed > 0 && words.__('%1 replayed', sum.replayed),
    sum.live > 0 && words.__('%1 new', sum.live),
    sum.failed > 0 && words.__('%1 failed', sum.failed)
  ].filter(Boolean);
  return (
    <div className="jp-Durable-head">
      <Pickers store={store} />
      <div className="jp-Durable-summary">
        {state && <State state={state} />}
        <span>{words._n('%1 step', '%1 steps', sum.steps)}</span>
        {counts.length > 0 && <span>{counts.join(', ')}</span>}
        {totals && <Spent store={store} />}
      </div>
      {page?.progress && <Progress progress={page.progress} label={words.__('Progress of the cell')} />}
      <div className="jp-Durable-buttons">
        {again.length > 0 && actions.resume && (
          <Button
            accept
            onClick={() => actions.resume?.(item && again.includes(item) ? item.run : undefined)}
          >
            {words.__('Resume')}
          </Button>
        )}
        {VIEWS.map(view => (
          <Button key={view} onClick={() => actions.view(view)}>
            {viewWord(view, words)}
          </Button>
        ))}
        {item &&
          RUN_DEEDS.map(deed => {
            const act = deed.of(actions, store);
            return (
              act && (
                <Button key={deed.id} onClick={act} expanded={deed.form && store.form === deed.form}>
                  {deed.label(words)}
                </Button>
              )
            );
          })}
      </div>
      <Branch key={`branch ${store.run} ${store.shown}`} store={store} actions={actions} />
      {item && newest && item.status === 'cancelled' && (
        <Cancelled key={`cancelled ${item.run}`} store={store} actions={actions} run={item} />
      )}
      {item && <Undone store={store} actions={actions} run={item} />}
      {item && store.form === 'cancel' && <CancelRun key={`cancel ${item.run}`} store={store} run={item} />}
      {item && store.form === 'signal' && <SendSignal key={`signal ${item.run}`} store={store} />}
      {item?.waits?.kind === 'settle' && <Asked store={store} actions={actions} run={item} />}
      {item && <Decide key={item.run} store={store} actions={actions} run={item} />}
      {item?.error && newest && (item.status === 'failed' || item.waits?.kind === 'read') && (
        <div className="jp-Durable-error">
          <strong>{item.error.type}</strong>
          <div>{item.error.message}</div>
        </div>
      )}
      {again.length > 0 && !actions.resume && (
        <div className="jp-Durable-banner" role="note">
          {words.__('To resume a run, run its cell again: finished steps come back from the log.')}
        </div>
      )}
      <Banners store={store} />
    </div>
  );
}

export function viewWord(view: string, words: ReturnType<typeof useWords>): string {
  switch (view) {
    case 'timeline':
      return words.__('Timeline');
    case 'compare':
      return words.__('Compare');
    case 'spend':
      return words.__('Spend');
    default:
      return words.__('SQL');
  }
}

function Spent({ store }: { store: Store }): JSX.Element | null {
  const words = useWords();
  const totals = store.history.page?.totals;
  if (!totals || (totals.calls === 0 && totals.replayed_calls === 0 && totals.unknown === 0)) {
    return null;
  }
  const saved =
    totals.replayed_cost > 0
      ? money(totals.replayed_cost)
      : words.__('%1 tokens', count(totals.replayed_tokens));
  const unsure = totals.unpriced + totals.unknown;
  return (
    <span className="jp-Durable-spent">
      {words.__('%1 spent', spentText(totals, words))}
      {totals.replayed_calls > 0 && `, ${words.__('%1 saved', saved)}`}
      {unsure > 0 && ` (${words._n('%1 call without a price', '%1 calls without a price', unsure)})`}
    </span>
  );
}

/** Steps that a person must say something about: where they are. The form is at the step. */
function Asked({ store, actions, run }: IHeadProps & { run: IRunItem }): JSX.Element {
  const words = useWords();
  const steps = run.waits?.steps ?? [];
  return (
    <div className="jp-Durable-settle">
      <p>
        <strong>{words._n('%1 step waits for you', '%1 steps wait for you', steps.length)}</strong>
        {': '}
        {steps.map(step => step.label).join(', ')}
      </p>
      <div className="jp-Durable-buttons">
        <Button onClick={() => goTo(store, actions, run)}>{words.__('Say what happened')}</Button>
      </div>
    </div>
  );
}

function Banners({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const page = store.history.page;
  const left = store.runs?.unreadable ?? [];
  // Without a notebook nobody knows whose they are.
  const other = !!store.api?.notebook && store.listed.length > 0 && !store.listed.some(run => run.here);
  return (
    <>
      {page?.untrusted && (
        <div className="jp-Durable-banner jp-mod-warn" role="note">
          <strong>{words.__('Not verified.')}</strong> {page.untrusted}
        </div>
      )}
      {page?.damaged && (
        <div className="jp-Durable-banner jp-mod-warn" role="note">
          <strong>{words.__('Damaged.')}</strong> {page.damaged}
        </div>
      )}
      {left.map((text, i) => (
        <div key={i} className="jp-Durable-banner jp-mod-warn" role="note">
          {text}
        </div>
      ))}
      {store.about?.elsewhere && (
        <div className="jp-Durable-banner" role="note">
          {words.__('This notebook was moved here; its history has stayed in %1', store.about.log)}
        </div>
      )}
      {other && (
        <div className="jp-Durable-banner" role="note">
          {words.__('These runs are of other notebooks that use the same log.')}
        </div>
      )}
      {page?.notices.map((notice, i) => (
        <div key={i} className="jp-Durable-banner" role="note">
          {notice.message}
        </div>
      ))}
      {store.phase === 'error' && store.runs && (
        <div className="jp-Durable-banner jp-mod-warn" role="alert">
          {store.refused
            ? words.__('The last question was refused; what is shown may be old. %1', store.problem)
            : words.__('The server does not answer; what is shown may be old. %1', store.problem)}
        </div>
      )}
      {store.item?.ended &&
        !(store.branchItem && isUntouched(store.branchItem)) &&
        store.item.status !== 'completed' && (
          <div className="jp-Durable-note">
            {words.__('Last execution ended %1', moment(store.item.ended))}
          </div>
        )}
    </>
  );
}
