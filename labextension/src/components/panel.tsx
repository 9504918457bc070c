/** The panel: one of its faces, or head and steps. */
import * as React from 'react';
import type { IActions } from '../actions';
import type { Store } from '../store';
import { Head } from './header';
import { Steps } from './steps';
import { Waiting } from './waiting';
import { Button, Face, useWords } from './words';

// What is typed, in every language.
const ENABLE = 'jupyter server extension enable jupyter_durable';
const FIRST_LINE = '%%durable NAME';
const LOAD = '%load_ext jupyter_durable';

interface IPanelProps {
  store: Store;
  actions: IActions;
  cellName: (cell: string) => string;
}

export function Panel(props: IPanelProps): JSX.Element {
  return (
    <FaceOr store={props.store}>
      <Waiting store={props.store} actions={props.actions} />
      <Head store={props.store} actions={props.actions} />
      <Steps {...props} />
    </FaceOr>
  );
}

/** What is shown while there is no run; else the children. */
export function FaceOr({ store, children }: { store: Store; children: React.ReactNode }): JSX.Element {
  const words = useWords();
  if (store.phase === 'idle') {
    return (
      <Face title={words.__('No notebook')}>
        <p>{words.__('Open a notebook to see its durable cells.')}</p>
      </Face>
    );
  }
  if (store.phase === 'missing') {
    return (
      <Face title={words.__('The server extension is not enabled')} alert>
        <p>{words.__('The panel asks it for everything. Enable it, then restart the Jupyter server:')}</p>
        <code>{ENABLE}</code>
      </Face>
    );
  }
  if (store.phase === 'error' && !store.runs) {
    return (
      <Face title={words.__('The log cannot be shown')} alert>
        <p>{store.problem}</p>
        <Button onClick={() => void store.refresh()}>{words.__('Try again')}</Button>
      </Face>
    );
  }
  if (!store.runs) {
    return <Face title={words.__('Loading …')} />;
  }
  if (store.listed.length === 0) {
    const others = store.runs.runs.length;
    return (
      <Face title={words.__('No durable run yet')}>
        <p>
          {words.__(
            'Begin a cell with this line, and each of its steps is recorded and comes back after a crash:'
          )}
        </p>
        <code>{FIRST_LINE}</code>
        <p>{words.__('Before it, once in the notebook:')}</p>
        <code>{LOAD}</code>
        {others > 0 && (
          <>
            <p>
              {words._n(
                '%1 run of another notebook is in the same log.',
                '%1 runs of other notebooks are in the same log.',
                others
              )}
            </p>
            <Button onClick={() => store.showOthers()}>{words.__('Show them')}</Button>
          </>
        )}
        {store.runs.unreadable.map((text, i) => (
          <p key={i} role="note">
            {text}
          </p>
        ))}
      </Face>
    );
  }
  return <>{children}</>;
}
