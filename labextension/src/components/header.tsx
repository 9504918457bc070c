/** Top of the panel: which run and branch, how it stands, what it cost, what can be done. */
import * as React from 'react';
import { type IActions } from '../actions';
import { count, isUnfinished, money, moment, runState, spentText } from '../format';
import { sums } from '../model';
import type { IRunItem } from '../shapes';
import type { Store } from '../store';
import { VIEWS } from '../tokens';
import { Button, State, useWords } from './words';

interface IHeadProps {
  store: Store;
  actions: IActions;
}

export function Pickers({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const branches = store.detail?.branches ?? [];
  return (
    <div className="jp-Durable-pickers">
      <select
        aria-label={words.__('Run')}
        value={store.run}
        onChange={event => store.choose(event.target.value)}
      >
        {store.listed.map(run => (
          <option key={run.run} value={run.run}>
            {[run.name, runState(run.status, words).word].join(' · ')}
          </option>
        ))}
      </select>
      {branches.length > 1 && (
        <select
          aria-label={words.__('Branch')}
          value={store.shown}
          onChange={event => store.choose(store.run, event.target.value)}
        >
          {branches.map(branch => (
            <option key={branch.branch} value={branch.branch}>
              {[branch.name, runState(branch.status, words).word].join(' · ')}
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
  const again = store.listed.filter(isUnfinished);
  const state = status && runState(status, words);
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
      <Live item={item} sum={sum.steps} />
      <div className="jp-Durable-buttons">
        {again.length > 0 && (
          <Button accept onClick={actions.resume}>
            {words.__('Resume')}
          </Button>
        )}
        {VIEWS.map(view => (
          <Button key={view} onClick={() => actions.view(view)}>
            {viewWord(view, words)}
          </Button>
        ))}
      </div>
      {item?.error && status !== 'running' && status !== 'completed' && !store.branch && (
        <div className="jp-Durable-error">
          <strong>{item.error.type}</strong>
          <div>{item.error.message}</div>
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

/** Says aloud how the run stands, when that changes: not each step, or nobody could listen to anything else. */
function Live({ item, sum }: { item: IRunItem | null; sum: number }): JSX.Element {
  const words = useWords();
  const said = React.useRef('');
  const status = item?.status ?? '';
  const text = React.useMemo(() => {
    if (!item) {
      return '';
    }
    said.current = words.__('Run %1: %2', item.name, runState(item.status, words).word);
    return said.current;
  }, [item?.run, status]);
  return (
    <div className="jp-Durable-live" role="status" aria-live="polite" data-steps={sum}>
      {text}
    </div>
  );
}

function Banners({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const page = store.history.page;
  const left = store.runs?.unreadable ?? [];
  const other = store.listed.length > 0 && !store.listed.some(run => run.here);
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
          {words.__('The server does not answer; what is shown may be old. %1', store.problem)}
        </div>
      )}
      {store.item && store.item.ended !== null && store.item.status !== 'completed' && (
        <div className="jp-Durable-note">{words.__('Last execution ended %1', moment(store.item.ended))}</div>
      )}
    </>
  );
}
