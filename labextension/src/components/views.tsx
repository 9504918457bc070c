/** The views beside the notebook, as tabs over one run and branch. */
import * as React from 'react';
import type { IActions } from '../actions';
import type { Store } from '../store';
import { VIEWS, type ViewName } from '../tokens';
import { CompareView } from './compareView';
import { Details } from './details';
import { Pickers, viewWord } from './header';
import { FaceOr } from './panel';
import { SpendView } from './spendView';
import { SqlView } from './sqlView';
import { TimelineView } from './timelineView';
import { useWords } from './words';

interface IViewsProps {
  store: Store;
  actions: IActions;
  view: ViewName;
  onView: (view: ViewName) => void;
}

export function Views({ store, actions, view, onView }: IViewsProps): JSX.Element {
  const words = useWords();
  const tabs = React.useRef<HTMLDivElement>(null);
  // Several output cells may show the views of one page.
  const id = React.useId();
  const onKey = (event: React.KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const next = VIEWS[(VIEWS.indexOf(view) + step + VIEWS.length) % VIEWS.length];
    if (step && next) {
      event.preventDefault();
      onView(next);
      tabs.current?.querySelector<HTMLElement>(`[data-view="${next}"]`)?.focus();
    }
  };
  return (
    <FaceOr store={store}>
      <div
        className="jp-Durable-tabs"
        role="tablist"
        aria-label={words.__('Views')}
        ref={tabs}
        onKeyDown={onKey}
      >
        {VIEWS.map(each => (
          <button
            key={each}
            type="button"
            role="tab"
            id={`${id}-${each}`}
            data-view={each}
            aria-selected={each === view}
            aria-controls={each === view ? `${id}-view` : undefined}
            tabIndex={each === view ? 0 : -1}
            onClick={() => onView(each)}
          >
            {viewWord(each, words)}
          </button>
        ))}
      </div>
      <div className="jp-Durable-viewHead">
        <Pickers store={store} />
      </div>
      <div
        id={`${id}-view`}
        className="jp-Durable-view"
        role="tabpanel"
        aria-labelledby={`${id}-${view}`}
        tabIndex={-1}
      >
        {view === 'timeline' && <TimelineView store={store} />}
        {view === 'compare' && <CompareView store={store} />}
        {view === 'spend' && <SpendView store={store} />}
        {view === 'sql' && <SqlView store={store} />}
      </div>
      {view === 'timeline' && store.step !== null && (
        <Details store={store} actions={actions} number={store.step} />
      )}
    </FaceOr>
  );
}
