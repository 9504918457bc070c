/** Everything about one step. */
import * as React from 'react';
import { type IActions, STEP_DEEDS } from '../actions';
import { isChild } from '../cancelling';
import { duration, moment, sourceText, stepState, usageText } from '../format';
import { sourceOf, statusOf } from '../model';
import type { IAttemptView, ICompensationItem, IStepDetail } from '../shapes';
import type { Store } from '../store';
import { CancelChild } from './cancelling';
import { Conversation } from './conversation';
import { Fork } from './fork';
import { Life } from './progress';
import { Waited } from './waited';
import { kindWord } from './steps';
import { Decide, Settle } from './settle';
import { ByHand } from './byHand';
import { ErrorBox, Outputs, Value } from './values';
import { Button, State, useAnswer, useWords } from './words';

interface IDetailsProps {
  store: Store;
  actions: IActions;
  number: number;
}

export function Details({ store, actions, number }: IDetailsProps): JSX.Element | null {
  const words = useWords();
  const row = store.history.rows.get(number);
  const { api, run, shown } = store;
  const key = row ? [run, shown, number, row.changed, statusOf(row, store.history)].join('/') : '';
  const { answer, problem } = useAnswer(api && row ? () => api.step(run, shown, number) : null, key);
  if (!row) {
    return null;
  }
  const detail = answer?.row.number === number && answer.run === run ? answer : null;
  const source = sourceOf(row, store.history);
  const status = statusOf(row, store.history);
  const used = usageText(row, words);
  const { item } = store;
  const isAsked =
    item?.waits?.kind === 'decide' &&
    item.waits.branch === shown &&
    item.waits.steps.some(step => step.number === number);
  const asked = isAsked ? item : null;
  return (
    <section className="jp-Durable-details" aria-label={words.__('Step %1', row.label)}>
      <header>
        <h3>{row.label}</h3>
        <Button onClick={() => store.chooseStep(null)} label={words.__('Close the details')}>
          ✕
        </Button>
      </header>
      <div className="jp-Durable-facts">
        <State state={stepState(status, source, words, row.kind)} />
        <span>{words.__('step %1', row.number)}</span>
        {row.kind !== 'step' && <span>{kindWord(row.kind, words)}</span>}
        {row.seconds !== null && <span>{duration(row.seconds)}</span>}
        {used && <span>{used}</span>}
        <span>{moment(row.started)}</span>
      </div>
      {status !== 'waiting' && <p>{sourceText(row, source, words)}</p>}
      <Life row={row} status={status} />
      {row.why && source !== 'live' && <p>{words.__('When it was recorded: %1', row.why)}</p>}
      <div className="jp-Durable-buttons">
        {STEP_DEEDS.map(deed => {
          const act = deed.of(actions, store, row);
          return (
            act && (
              <Button key={deed.id} onClick={act} expanded={deed.form && store.form === deed.form}>
                {deed.label(words)}
              </Button>
            )
          );
        })}
      </div>
      {store.form === 'cancel-child' && isChild(row) && (
        <CancelChild key={`cancel ${run}/${number}`} store={store} row={row} />
      )}
      {store.form === 'fork' && <Fork key={`fork ${run}/${shown}/${number}`} store={store} row={row} />}
      {problem && <div className="jp-Durable-error">{problem}</div>}
      <Settle
        key={`settle ${run}/${shown}/${number}`}
        store={store}
        actions={actions}
        row={row}
        status={status}
        salvage={detail?.not_stored?.salvage !== null && detail?.not_stored?.salvage !== undefined}
      />
      {asked && (
        <Decide key={`decide ${number}`} store={store} actions={actions} run={asked} step={row.name} />
      )}
      {detail?.wait && (
        <Waited key={`wait ${run}/${number}`} store={store} actions={actions} row={row} wait={detail.wait} />
      )}
      {detail ? <Parts detail={detail} /> : !problem && <p>{words.__('Loading …')}</p>}
      {detail && !actions.runFrom && <ByHand store={store} detail={detail} />}
    </section>
  );
}

function Parts({ detail }: { detail: IStepDetail }): JSX.Element {
  const words = useWords();
  const failures = detail.attempts.filter(attempt => attempt.error).length;
  return (
    <>
      {detail.note && <p className="jp-Durable-note">{detail.note}</p>}
      {detail.notices.map((notice, i) => (
        <p key={i} className="jp-Durable-note">
          {notice.message}
        </p>
      ))}
      {detail.error && (
        <>
          <h4>{words.__('Error')}</h4>
          <ErrorBox error={detail.error} />
        </>
      )}
      {detail.not_stored && (
        <>
          <h4>{words.__('The value could not be stored')}</h4>
          <p>
            {detail.not_stored.path} ({detail.not_stored.type}): {detail.not_stored.reason}
          </p>
          {detail.not_stored.salvage && (
            <Value value={detail.not_stored.salvage} label={words.__('What was saved of the value')} />
          )}
        </>
      )}
      {detail.settled && (
        <p className="jp-Durable-note">
          {words.__('Settled by %1: %2', detail.settled.by, detail.settled.choice)}
        </p>
      )}
      {detail.compensation && <p className="jp-Durable-note">{undoneText(detail.compensation, words)}</p>}
      {detail.adopted_from && (
        <p className="jp-Durable-note">
          {words.__(
            'Recorded first on branch %1',
            detail.adopted_from.branch_name || detail.adopted_from.execution
          )}
        </p>
      )}
      {detail.call ? (
        <>
          <h4>{words.__('Conversation')}</h4>
          <Conversation call={detail.call} />
        </>
      ) : (
        detail.value && (
          <>
            <h4>{words.__('Result')}</h4>
            <Value value={detail.value} label={words.__('Result')} />
          </>
        )
      )}
      {detail.outputs.length > 0 && (
        <>
          <h4>{words.__('Output')}</h4>
          <Outputs outputs={detail.outputs} />
        </>
      )}
      {(detail.attempts.length > 1 || failures > 0) && (
        <>
          <h4>{words._n('%1 attempt', '%1 attempts', detail.attempts.length)}</h4>
          <ol className="jp-Durable-attempts">
            {detail.attempts.map(attempt => (
              <Attempt key={attempt.seq} attempt={attempt} />
            ))}
          </ol>
        </>
      )}
      <details>
        <summary>{words.__('For the record')}</summary>
        <dl className="jp-Durable-record">
          <dt>{words.__('Arguments (digest)')}</dt>
          <dd>{detail.digest || '–'}</dd>
          <dt>{words.__('Code (digest)')}</dt>
          <dd>{detail.evidence || '–'}</dd>
          <dt>{words.__('Place')}</dt>
          <dd>{detail.row.scope || words.__('the cell itself')}</dd>
          <dt>{words.__('Execution')}</dt>
          <dd>{detail.row.execution}</dd>
        </dl>
      </details>
    </>
  );
}

function undoneText({ name, undone, by, at }: ICompensationItem, words: ReturnType<typeof useWords>): string {
  if (!undone) {
    return words.__('Can be undone, by %1.', name);
  }
  const who = by || words.__('the run itself');
  return words.__('Undone with %1 by %2, %3.', name, who, at === null ? '?' : moment(at));
}

function Attempt({ attempt }: { attempt: IAttemptView }): JSX.Element {
  const words = useWords();
  const took = attempt.ended === null ? '' : duration(attempt.ended - attempt.started);
  return (
    <li>
      {[attempt.status.replace('_', ' '), took, moment(attempt.started)].filter(Boolean).join(' · ')}
      {attempt.retry_in > 0 && ` · ${words.__('again after %1', duration(attempt.retry_in))}`}
      {attempt.error && <ErrorBox error={attempt.error} />}
    </li>
  );
}
