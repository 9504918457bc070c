/** The steps of a branch: filter, tree, and the details of the chosen one. */
import * as React from 'react';
import {
  EVERYTHING,
  flatten,
  type IFilter,
  type IHistory,
  type ILine,
  isFiltered,
  sourceOf,
  statusOf
} from '../model';
import { duration, stepState, usageText } from '../format';
import { isUntouched } from '../branches';
import { isChild } from '../cancelling';
import { progressText } from '../progress';
import type { StepStatus } from '../shapes';
import type { IActions } from '../actions';
import type { Store } from '../store';
import { Details } from './details';
import { Progress } from './progress';
import type { Only } from '../look';
import { Tree } from './tree';
import { Face, State, useWords } from './words';

interface IStepsProps {
  store: Store;
  actions: IActions;
  /** How a cell is called, such as `Cell [3]`. */
  cellName: (cell: string) => string;
}

function filterOf(text: string, only: Only): IFilter {
  const statuses: Partial<Record<Only, StepStatus[]>> = {
    failed: ['failed', 'not_stored'],
    doubt: ['in_doubt'],
    running: ['running'],
    waiting: ['waiting']
  };
  return {
    ...EVERYTHING,
    text,
    statuses: statuses[only] ?? [],
    kinds: only === 'model' ? ['model'] : [],
    live: only === 'live'
  };
}

export function Steps({ store, actions, cellName }: IStepsProps): JSX.Element {
  const words = useWords();
  const { text, only, collapsed } = store.look;
  const search = React.useRef<HTMLInputElement>(null);
  const history = store.history;
  const filter = React.useMemo(() => filterOf(text, only), [text, only]);
  const lines = React.useMemo(
    () => flatten(history, filter, collapsed),
    [history.version, history.rows, filter, collapsed]
  );
  const toggle = (line: ILine, expanded: boolean): void => {
    const next = new Set(collapsed);
    if (expanded) {
      next.delete(line.key);
    } else {
      next.add(line.key);
    }
    store.setLook({ collapsed: next });
  };
  const chosen = store.step === null ? null : `s${store.step}`;
  const hits = lines.filter(line => line.row && !line.faint).length;

  return (
    <div className="jp-Durable-steps">
      <div className="jp-Durable-filter" role="search">
        <input
          ref={search}
          type="search"

          placeholder={words.__('Filter steps')}
          aria-label={words.__('Filter steps by name, model, reason or error')}
          value={text}
          onChange={event => store.setLook({ text: event.target.value })}
          onKeyDown={event => {
            if (event.key === 'Escape' && text) {
              event.stopPropagation();
              store.setLook({ text: '' });
            }
          }}
        />
        <select
          aria-label={words.__('Show only')}
          value={only}
          onChange={event => store.setLook({ only: event.target.value as Only })}
        >
          <option value="all">{words.__('all')}</option>
          <option value="live">{words.__('new this run')}</option>
          <option value="failed">{words.__('failed')}</option>
          <option value="doubt">{words.__('in doubt')}</option>
          <option value="waiting">{words.__('waiting')}</option>
          <option value="running">{words.__('running')}</option>
          <option value="model">{words.__('model calls')}</option>
        </select>
      </div>
      {lines.length === 0 ? (
        <NoSteps store={store} filtered={isFiltered(filter)} />
      ) : (
        <Tree
          lines={lines}
          label={words.__('Steps of %1', store.item?.name ?? '')}
          selected={chosen}
          draw={line => <Line line={line} history={history} cellName={cellName} />}
          name={line => lineName(line, history, words, cellName)}
          onSelect={line => {
            store.chooseStep(line.row?.number ?? null);
            actions.reveal?.(line.cell, line.row?.line ?? 0);
          }}
          onChoose={line => store.chooseStep(line.row?.number ?? null)}
          onOpen={line => {
            if (line.row) {
              store.chooseStep(line.row.number);
            } else {
              actions.reveal?.(line.cell, 0);
            }
          }}
          onToggle={toggle}
          onFork={line => {
            if (line.row) {
              store.chooseStep(line.row.number);
              store.openForm('fork');
            }
          }}
          onFilter={() => search.current?.focus()}
          onLeave={actions.leave}
        />
      )}
      {isFiltered(filter) && (
        <div className="jp-Durable-note" role="status">
          {words._n('%1 step matches', '%1 steps match', hits)}
        </div>
      )}
      {store.step !== null && <Details store={store} actions={actions} number={store.step} />}
    </div>
  );
}

function NoSteps({ store, filtered }: { store: Store; filtered: boolean }): JSX.Element {
  const words = useWords();
  if (!store.whole) {
    return <Face title={words.__('Loading steps …')} />;
  }
  const branch = store.branchItem;
  if (branch && isUntouched(branch) && !filtered) {
    return (
      <Face title={words.__('Nothing was executed on this branch yet.')}>
        <p>{words.__('What is kept of the branch before appears here when the cell runs.')}</p>
      </Face>
    );
  }
  return filtered ? (
    <Face title={words.__('No step matches the filter.')} />
  ) : (
    <Face title={words.__('No step yet.')}>
      <p>{words.__('Functions with @step and model calls of the cell appear here as they run.')}</p>
    </Face>
  );
}

interface ILineProps {
  line: ILine;
  history: IHistory;
  cellName: (cell: string) => string;
}

function Line({ line, history, cellName }: ILineProps): JSX.Element {
  const words = useWords();
  const row = line.row;
  if (!row) {
    return (
      <>
        <span className="jp-Durable-label">{cellName(line.cell)}</span>{' '}
        <span className="jp-Durable-meta">{words._n('%1 step', '%1 steps', line.below)}</span>
      </>
    );
  }
  return (
    <>
      {/* In the order of the name that is read aloud, and with spaces, or the words of both are others. */}
      <span className="jp-Durable-label">{row.label}</span>{' '}
      {row.kind !== 'step' && (
        <span className={`jp-Durable-kind${isChild(row) ? ' jp-mod-child' : ''}`}>
          {kindWord(row.kind, words)}
        </span>
      )}{' '}
      <State state={stepState(statusOf(row, history), sourceOf(row, history), words, row.kind)} />{' '}
      {isChild(row) && <span className="jp-Durable-meta jp-mod-used">{insideText(line, words)}</span>}{' '}
      {progressOf(line, history) && row.progress && (
        <Progress progress={row.progress} label={words.__('Progress of %1', row.label)} small />
      )}
      {row.missed && (
        <span className="jp-Durable-meta jp-Durable-missed" title={row.missed}>
          {words.__('△ not heard of')}
        </span>
      )}{' '}
      <span className={`jp-Durable-meta${isChild(row) ? ' jp-mod-used' : ''}`}>{duration(row.seconds)}</span>{' '}
      <span className="jp-Durable-meta jp-mod-used">{usageText(row, words)}</span>
    </>
  );
}

/** How many steps are in a child run. */
function insideText(line: ILine, words: ReturnType<typeof useWords>): string {
  return words._n('%1 step', '%1 steps', line.below);
}

/** How far a step is that has no end. */
function progressOf({ row }: ILine, history: IHistory): string {
  const open = row && ['running', 'in_doubt'].includes(statusOf(row, history));
  return open && row.progress ? progressText(row.progress) : '';
}

export function kindWord(kind: string, words: ReturnType<typeof useWords>): string {
  switch (kind) {
    case 'run':
      return words.__('child run');
    case 'model':
      return words.__('model');
    case 'tool':
      return words.__('tool');
    case 'approval':
      return words.__('question');
    case 'signal':
      return words.__('signal');
    case 'timer':
      return words.__('timer');
    default:
      return kind;
  }
}

/** What a screen reader says: all that the line shows, in one sentence. */
function lineName(
  line: ILine,
  history: IHistory,
  words: ReturnType<typeof useWords>,
  cellName: (cell: string) => string
): string {
  const row = line.row;
  if (!row) {
    return [cellName(line.cell), words._n('%1 step', '%1 steps', line.below)].join(', ');
  }
  const state = stepState(statusOf(row, history), sourceOf(row, history), words, row.kind);
  const inside = isChild(row) ? insideText(line, words) : '';
  const kind = row.kind === 'step' ? '' : kindWord(row.kind, words);
  const missed = row.missed ? words.__('not heard of') : '';
  const progress = progressOf(line, history);
  return [row.label, kind, state.word, inside, progress, missed, duration(row.seconds), usageText(row, words)]
    .filter(Boolean)
    .join(', ');
}
