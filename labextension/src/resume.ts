/**
 * Resume: run the cells whose runs did not come to their end, in order, in the kernel that is there now.
 *
 * Finished steps come back from the log. What the cells need from above (imports, step functions) is gone with the
 * kernel, so cells above them that this kernel has not run yet go first. A durable cell is run with `--replay-only`,
 * which spends nothing; where a step has no result in the log, a person is asked, and only then it is run for real.
 */
import { CodeCell } from '@jupyterlab/cells';
import { NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import { OutputArea } from '@jupyterlab/outputarea';
import { askAhead, type IAhead } from './ahead';
import type { Api } from './api';
import { cellName, durableCells, type IDurableCell } from './cells';
import { type IWords, spentText } from './format';
import { findHeader, hasFlag, withFlag } from './header';
import type { IRunItem, IWaitItem } from './shapes';
import { canGoOn, now } from './waits';

/** Which cells ran to their end since their kernel began. */
export class Ran {
  private readonly byPanel = new WeakMap<NotebookPanel, Set<string>>();

  add(panel: NotebookPanel, cell: string): void {
    const set = this.byPanel.get(panel) ?? new Set<string>();
    this.byPanel.set(panel, set.add(cell));
  }

  forget(panel: NotebookPanel): void {
    this.byPanel.delete(panel);
  }

  has(panel: NotebookPanel, cell: string): boolean {
    return this.byPanel.get(panel)?.has(cell) ?? false;
  }
}

/** What can be resumed, and what was paid for already. */
export interface IProspect {
  cells: IDurableCell[];
  steps: number;
  cost: number;
  tokens: number;
  /** Calls whose price is not known. */
  unpriced: number;
}

/**
 * @param run - id of the one run that is meant; empty: all that did not come to their end
 * @param waits - what the runs wait for, as far as it is known
 * @param anyway - also a run that has come to its end: another branch of it is taken up next
 */
export async function prospect(
  panel: NotebookPanel,
  api: Api,
  runs: readonly IRunItem[],
  run = '',
  waits: readonly IWaitItem[] = [],
  anyway = false
): Promise<IProspect> {
  const cells = durableCells(panel, runs).filter(
    each => each.run && (anyway || canGoOn(each.run, waits, now())) && (run === '' || each.run.run === run)
  );
  const found: IProspect = { cells, steps: 0, cost: 0, tokens: 0, unpriced: 0 };
  for (const { run } of cells) {
    if (run) {
      const page = await api.steps(run.run, run.next || run.branch, -1, '', 0);
      const { by_status, cost, tokens, unpriced } = page.totals;
      found.steps += (by_status['completed'] ?? 0) + (by_status['adopted'] ?? 0);
      found.cost += cost;
      found.tokens += tokens;
      found.unpriced += unpriced;
    }
  }
  return found;
}

/** What resuming will do, in a sentence. */
export function prospectText(found: IProspect, words: IWords): string {
  const cells = found.cells.length;
  return words._n(
    '%1 durable cell can be resumed. Recorded steps that come back: %2. Paid already, and not paid again: %3.',
    '%1 durable cells can be resumed. Recorded steps that come back: %2. Paid already, and not paid again: %3.',
    cells,
    found.steps,
    spentText(found, words)
  );
}

/** How a round of resuming ended. */
export interface IEnd {
  /**
   * `done`: every cell came to its end, or the last one waits. `no`: a person did not want to spend. `stopped`: a cell
   * failed, or asks.
   */
  how: 'done' | 'no' | 'stopped';
  /** Where it ended. */
  cell: CodeCell | null;
  /** Why it stopped, as a sentence. */
  message: string;
}

export interface IWays {
  words: IWords;
  ran: Ran;
  /** For the durable cells, such as `--fresh`; empty: as they are written. */
  flag: string;
  /**
   * Asks before a cell spends; `null`: nobody is asked.
   *
   * @param ahead - what came back, and what comes next; `null`: the cell says itself that it executes steps again
   * @param more - whether durable cells follow
   */
  ask: ((cell: CodeCell, ahead: IAhead | null, more: boolean) => Promise<'yes' | 'all' | 'no'>) | null;
  /** Ids of cells that a person has let go on already, by an answer: nobody is asked about these. */
  agreed: ReadonlySet<string>;
}

/** Run what is needed, in order. */
export async function resume(panel: NotebookPanel, found: IProspect, ways: IWays): Promise<IEnd> {
  const wanted = new Set(found.cells.map(each => each.cell.model.id));
  const last = found.cells[found.cells.length - 1];
  if (!last) {
    return { how: 'done', cell: null, message: '' };
  }
  const fresh = await isFresh(panel);
  const cells = panel.content.widgets
    .slice(0, last.index + 1)
    .filter(
      (cell): cell is CodeCell =>
        cell instanceof CodeCell && (wanted.has(cell.model.id) || !hasRun(panel, cell, ways.ran, fresh))
    );
  let asks = ways.ask;
  for (const [index, cell] of cells.entries()) {
    const flag = wanted.has(cell.model.id) ? ways.flag : '';
    if (asks && !flag && isDurable(cell) && !ways.agreed.has(cell.model.id)) {
      const more = cells.slice(index + 1).some(isDurable);
      const answer = await replayOrAsk(panel, cell, ahead => asks?.(cell, ahead, more) ?? 'no');
      if (answer === 'done') {
        ways.ran.add(panel, cell.model.id);
        continue;
      }
      if (answer === 'no') {
        return { how: 'no', cell, message: '' };
      }
      if (answer === 'failed') {
        return stoppedAt(panel, cell, ways.words);
      }
      asks = answer === 'all' ? null : asks;
    }
    const done = flag
      ? await runWith(panel, cell, flag)
      : await NotebookActions.runCells(panel.content, [cell], panel.sessionContext);
    if (!done && index === cells.length - 1 && errorOf(cell)?.name === PARKED) {
      // It waits again: the panel says for what.
      return { how: 'done', cell, message: '' };
    }
    if (!done) {
      return stoppedAt(panel, cell, ways.words);
    }
  }
  return { how: 'done', cell: null, message: '' };
}

/** Whether running it may execute steps: it is durable, and its first line does not say otherwise. */
function isDurable(cell: CodeCell): boolean {
  const header = findHeader(cell.model.sharedModel.getSource());
  return header !== null && !hasFlag(header, '--off') && !hasFlag(header, '--plan');
}

/** The errors by which a cell asks a person. */
const QUESTIONS = ['InDoubtError', 'ValueNotStored', 'DecisionNeeded'];
const REPLAY_ONLY = 'ReplayOnlyError';
const PARKED = 'Parked';
const CANCELLED = 'RunCancelled';

/**
 * Replay a durable cell, and ask at the first step that is not in the log.
 *
 * @returns `done`: nothing was missing; `failed`: it ended by another error; else what the person said
 */
async function replayOrAsk(
  panel: NotebookPanel,
  cell: CodeCell,
  ask: (ahead: IAhead | null) => Promise<'yes' | 'all' | 'no'> | 'no'
): Promise<'done' | 'failed' | 'yes' | 'all' | 'no'> {
  const header = findHeader(cell.model.sharedModel.getSource());
  if (header && (hasFlag(header, '--fresh') || hasFlag(header, '--from'))) {
    return ask(null);
  }
  if (await runWith(panel, cell, '--replay-only')) {
    return 'done';
  }
  if (errorOf(cell)?.name !== REPLAY_ONLY) {
    return 'failed';
  }
  // It did not fail: it came to where it would spend. What came back stays in sight.
  const kept = cell.model.outputs.toJSON().filter(each => each.output_type !== 'error');
  cell.model.outputs.fromJSON(kept);
  const kernel = panel.sessionContext.session?.kernel;
  const ahead = kernel ? await askAhead(kernel) : null;
  // Where the cell will ask a person, it executes nothing either: let it say what it asks.
  return ahead?.asks ? 'yes' : ask(ahead);
}

/** The error that stands below a cell. */
function errorOf(cell: CodeCell): { name: string; value: string } | null {
  const outputs = cell.model.outputs.toJSON();
  for (let i = outputs.length - 1; i >= 0; i--) {
    const output = outputs[i];
    if (output?.output_type === 'error') {
      return { name: String(output['ename']), value: String(output['evalue']) };
    }
  }
  return null;
}

function stoppedAt(panel: NotebookPanel, cell: CodeCell, words: IWords): IEnd {
  const error = errorOf(cell);
  const name = cellName(panel, cell.model.id, words);
  const message =
    error?.name === PARKED
      ? words.__('%1 waits, and is parked. The cells after it were not run.', name)
      : error?.name === CANCELLED
        ? words.__('%1 was cancelled. The cells after it were not run.', name)
        : error && QUESTIONS.includes(error.name)
          ? words.__(
              '%1 waits for you: it asks what becomes of a step. The cells after it were not run.',
              name
            )
          : words.__(
              '%1 did not come to its end%2. The cells after it were not run.',
              name,
              error ? ` (${error.name})` : ''
            );
  return { how: 'stopped', cell, message };
}

/** Whether the kernel has run nothing yet: then no cell ran in it, whatever number stands beside it. */
async function isFresh(panel: NotebookPanel): Promise<boolean> {
  await panel.sessionContext.ready;
  const future = panel.sessionContext.session?.kernel?.requestExecute({
    code: '',
    silent: true,
    user_expressions: { count: 'get_ipython().execution_count' }
  });
  const reply = await future?.done;
  if (reply?.content.status !== 'ok') {
    return false;
  }
  const answer = reply.content.user_expressions['count'] as { data?: Record<string, unknown> } | undefined;
  return answer?.data?.['text/plain'] === '1';
}

/** A page that was loaded anew saw nothing run; in a kernel that lived on, the numbers beside the cells tell. */
function hasRun(panel: NotebookPanel, cell: CodeCell, ran: Ran, fresh: boolean): boolean {
  return !fresh && (ran.has(panel, cell.model.id) || cell.model.executionCount !== null);
}

/**
 * Run one durable cell with a further flag, such as `--fresh`, and leave its text as it is: the flag is meant for this
 * once, and would begin a new branch at every later run if it stayed there.
 *
 * @returns whether it came to its end
 */
export async function runWith(panel: NotebookPanel, cell: CodeCell, flag: string): Promise<boolean> {
  await panel.sessionContext.ready;
  const { model } = cell;
  const code = withFlag(model.sharedModel.getSource(), flag);
  model.sharedModel.transact(() => {
    model.clearExecution();
    cell.outputHidden = false;
  }, false);
  model.executionState = 'running';
  model.trusted = true;
  try {
    const reply = await OutputArea.execute(code, cell.outputArea, panel.sessionContext, { cellId: model.id });
    if (reply) {
      model.executionCount = reply.content.execution_count;
    }
    return reply?.content.status === 'ok';
  } catch (reason) {
    // The kernel is gone: whoever watches it says so.
    console.warn('jupyter_durable: the cell was not run to its end.', reason);
    return false;
  } finally {
    if (!cell.isDisposed) {
      model.executionState = 'idle';
    }
  }
}
