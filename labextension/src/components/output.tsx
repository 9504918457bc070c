/** The panel in an output cell: head and steps, or one of the views in their place. */
import * as React from 'react';
import type { IActions } from '../actions';
import type { Hearing } from '../messages';
import type { IHistory } from '../model';
import type { Store } from '../store';
import type { ViewName } from '../tokens';
import { Panel } from './panel';
import { Views } from './views';
import { Button, Face, useWords } from './words';

interface IOutputProps {
  store: Store;
  hearing: Hearing;
  /** Let the focus go. */
  leave: () => void;
}

export function Output({ store, hearing, leave }: IOutputProps): JSX.Element {
  const words = useWords();
  const [view, setView] = React.useState<ViewName | null>(null);
  const actions: IActions = {
    leave,
    view: setView
  };
  const cells = React.useMemo(() => cellsOf(store.history), [store.history.version, store.history.rows]);
  const cellName = (cell: string): string =>
    cells.length < 2 ? words.__('Cell') : words.__('Cell %1', cells.indexOf(cell) + 1);
  if (!store.runs && hearing !== 'fine') {
    return <Unheard hearing={hearing} first />;
  }
  return (
    <>
      {hearing !== 'fine' && <Unheard hearing={hearing} />}
      {view === null ? (
        <Panel store={store} actions={actions} cellName={cellName} />
      ) : (
        <div className="jp-Durable-views">
          <div className="jp-Durable-toolbar">
            <Button onClick={() => setView(null)}>{words.__('Back to the steps')}</Button>
          </div>
          <Views store={store} actions={actions} view={view} onView={setView} />
        </div>
      )}
    </>
  );
}

/** The cells of a history, in the order of their first steps. */
export function cellsOf(history: IHistory): string[] {
  const rows = [...history.rows.values()].sort((a, b) => a.number - b.number);
  return [...new Set(rows.map(row => row.cell))];
}

/** Why there is nothing, or nothing new. It is no error: a kernel does one thing at a time. */
function Unheard({ hearing, first }: { hearing: Hearing; first?: boolean }): JSX.Element {
  const words = useWords();
  const titles = {
    fine: '',
    busy: words.__('The kernel is busy'),
    silent: words.__('No answer from the kernel'),
    gone: words.__('The kernel of this panel has ended')
  };
  const texts = {
    fine: '',
    busy: words.__('What was asked is answered when the cell that is running has ended.'),
    silent: words.__(
      'It is busy, or it has ended. If it has, run this cell again: the steps are in the log.'
    ),
    gone: words.__('Run this cell again to see the steps: they are in the log.')
  };
  return first ? (
    <Face title={titles[hearing]}>
      <p role="status">{texts[hearing]}</p>
    </Face>
  ) : (
    <div className="jp-Durable-banner jp-Durable-unheard" role="status">
      <strong>{titles[hearing]}.</strong> {texts[hearing]}
    </div>
  );
}
