/** Everything in the log that waits, at the top of the panel: runs that need a person, questions, signals, timers. */
import * as React from 'react';
import type { IActions } from '../actions';
import { whose } from '../cancelling';
import { moment, waitsText } from '../format';
import type { IRunItem, IWaitItem } from '../shapes';
import type { Store } from '../store';
import { waitTitle } from '../waits';
import { useAnswers, useNow, Wait } from './answering';
import { Kept } from './signal';
import { Button, useWords } from './words';

const isHere = (store: Store, run: string): boolean =>
  store.runs?.runs.find(each => each.run === run)?.here ?? false;

/** What runs wait for, that of this notebook first. */
export function waits(store: Store): IWaitItem[] {
  const all = store.waits ?? [];
  const here = new Set(store.runs?.runs.filter(run => run.here).map(run => run.run));
  return [...all.filter(wait => here.has(wait.run)), ...all.filter(wait => !here.has(wait.run))];
}

/** The runs that wait for something that is no question, signal or timer; those of this notebook first. */
export function waitingRuns(store: Store): IRunItem[] {
  const told = new Set((store.waits ?? []).map(wait => wait.run));
  const waiting = (store.runs?.runs ?? []).filter(
    run =>
      run.waits !== null &&
      // Somebody wants it to stay as it is: it is said at the run.
      run.waits.kind !== 'cancelled' &&
      !(told.has(run.run) && ['answer', 'timer', 'resume'].includes(run.waits.kind))
  );
  return [...waiting.filter(run => run.here), ...waiting.filter(run => !run.here)];
}

/** How much waits, as the status bar says it. */
export function countWaiting(store: Store): number {
  return waitingRuns(store).length + (store.waits?.length ?? 0);
}

interface IWaitingProps {
  store: Store;
  actions: IActions;
}

export function Waiting({ store, actions }: IWaitingProps): JSX.Element {
  const words = useWords();
  const runs = waitingRuns(store);
  const asked = waits(store);
  const answers = useAnswers(store);
  const at = useNow(asked.some(wait => wait.until !== null));
  const { box, onFocus, onBlur } = useKeptFocus();
  const count = runs.length + asked.length;
  const lost = answers.refused && !asked.some(wait => wait.request === answers.request);
  const parts = (
    <>
      <ul aria-label={words.__('Waiting for you')}>
        {asked.map(wait => (
          <li
            key={`${wait.run} ${wait.request}`}
            className="jp-Durable-wait"
            data-request={wait.request}
            tabIndex={-1}
          >
            <button type="button" className="jp-Durable-link" onClick={() => goToWait(store, actions, wait)}>
              {whose(wait.run_name, wait.child)}: {waitTitle(wait, words)}
              {!isHere(store, wait.run) && ` (${wait.notebook.split('/').pop() ?? ''})`}
            </button>
            <Wait
              store={store}
              actions={actions}
              wait={wait}
              answers={answers}
              at={at}
              here={isHere(store, wait.run)}
              open={count === 1}
            />
          </li>
        ))}
        {runs.map(run => (
          <li key={run.run} className="jp-Durable-waitingRun">
            <button
              type="button"
              className="jp-Durable-link"
              title={run.waits?.message}
              onClick={() => goTo(store, actions, run)}
            >
              {run.name}: {waitsText(run, words)}
              {!run.here && ` (${run.notebook.split('/').pop() ?? ''})`}
              <span className="jp-Durable-meta"> {moment(run.waits?.since ?? run.started)}</span>
            </button>
            {run.here && run.waits?.kind === 'resume' && actions.resume && (
              <Button label={words.__('Resume %1', run.name)} onClick={() => actions.resume?.(run.run)}>
                {words.__('Resume')}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {actions.goesOn && asked.some(wait => isHere(store, wait.run)) && (
        <label className="jp-Durable-goOn">
          <input
            type="checkbox"
            checked={actions.goesOn()}
            onChange={event => store.setGoOn(event.target.checked)}
          />
          {words.__('Resume cells of this notebook when they are answered')}
        </label>
      )}
    </>
  );
  return (
    <div ref={box} className="jp-Durable-waitingBox" onFocus={onFocus} onBlur={onBlur}>
      <div className="jp-Durable-hidden" role="status">
        {answers.refused ? '' : answers.said}
      </div>
      {(count > 0 || lost || store.kept.length > 0) && (
        <details className="jp-Durable-waiting" open>
          <summary>
            <strong>
              {count > 0 || lost
                ? words._n('%1 waiting', '%1 waiting', count)
                : words._n('%1 signal is kept', '%1 signals are kept', store.kept.length)}
            </strong>
          </summary>
          {lost && (
            <div className="jp-Durable-error">
              <p role="alert">{answers.said}</p>
              <Button onClick={answers.forget}>{words.__('OK')}</Button>
            </div>
          )}
          {count > 0 && parts}
          <Kept kept={store.kept} />
        </details>
      )}
    </div>
  );
}

/**
 * What had the focus may go away with the answer. Then the focus stays near: at what became of the same wait, else at the
 * head of the section, else at the steps.
 */
function useKeptFocus(): {
  box: React.RefObject<HTMLDivElement>;
  onFocus: (event: React.FocusEvent) => void;
  onBlur: (event: React.FocusEvent) => void;
} {
  const box = React.useRef<HTMLDivElement>(null);
  /** The wait in which the focus was; empty: elsewhere in the section; `null`: not in it. */
  const last = React.useRef<string | null>(null);
  React.useLayoutEffect(() => {
    const own = box.current;
    const focused = (own?.getRootNode() as Document | ShadowRoot | undefined)?.activeElement ?? null;
    if (last.current === null || !own || own.contains(focused)) {
      return;
    }
    if (focused && focused !== document.body) {
      last.current = null;
      return;
    }
    const same = [...own.querySelectorAll<HTMLElement>('[data-request]')].find(
      each => each.dataset['request'] === last.current
    );
    const next =
      same?.querySelector<HTMLElement>('.jp-Durable-buttons button') ??
      same ??
      own.querySelector<HTMLElement>('summary') ??
      own.closest('.jp-Durable')?.querySelector<HTMLElement>('[role="treeitem"][tabindex="0"]');
    next?.focus();
  });
  return {
    box,
    onFocus: event => {
      const item = (event.target as HTMLElement).closest<HTMLElement>('[data-request]');
      last.current = item?.dataset['request'] ?? '';
    },
    onBlur: event => {
      const to = event.relatedTarget;
      if (!(to instanceof Node) || !box.current?.contains(to)) {
        last.current = null;
      }
    }
  };
}

/** To the run, and to the step that it asks about. */
export function goTo(store: Store, actions: IActions, run: IRunItem): void {
  const waits = run.waits;
  const step = waits?.steps[0];
  if (!run.here) {
    store.others = true;
  }
  store.choose(run.run, step && waits ? waits.branch : '');
  store.chooseStep(step?.number ?? null);
  if (run.here) {
    actions.reveal?.(run.cell, 0);
  }
}

/** To the step that waits. */
export function goToWait(store: Store, actions: IActions, wait: IWaitItem): void {
  const here = isHere(store, wait.run);
  store.others ||= !here;
  store.choose(wait.run);
  store.chooseStep(wait.number);
  if (here) {
    actions.reveal?.(wait.cell, 0);
  }
}
