/** Everything in the log that waits for a person, at the top of the panel. */
import * as React from 'react';
import type { IActions } from '../actions';
import { moment, waitsText } from '../format';
import type { IRunItem } from '../shapes';
import type { Store } from '../store';
import { Button, useWords } from './words';

/** The runs that wait, those of this notebook first. */
export function waitingRuns(store: Store): IRunItem[] {
  const waiting = (store.runs?.runs ?? []).filter(run => run.waits !== null);
  return [...waiting.filter(run => run.here), ...waiting.filter(run => !run.here)];
}

export function Waiting({ store, actions }: { store: Store; actions: IActions }): JSX.Element | null {
  const words = useWords();
  const runs = waitingRuns(store);
  if (runs.length === 0) {
    return null;
  }
  const title = words._n('%1 waiting', '%1 waiting', runs.length);
  return (
    <details className="jp-Durable-waiting" open>
      <summary>
        <strong>{title}</strong>
      </summary>
      <ul aria-label={words.__('Waiting for you')}>
        {runs.map(run => (
          <li key={run.run}>
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
    </details>
  );
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
