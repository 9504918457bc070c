/**
 * Resume: run the cells whose runs did not come to their end, in order, in the kernel that is there now.
 *
 * Finished steps come back from the log. What the cells need from above (imports, step functions) is gone with the
 * kernel, so cells above them that this kernel has not run yet go first.
 */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import { NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import { OutputArea } from '@jupyterlab/outputarea';
import type { Api } from './api';
import { durableCells, type IDurableCell } from './cells';
import { type IWords, isUnfinished, spentText } from './format';
import { withFlag } from './header';
import type { IRunItem } from './shapes';

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

export async function prospect(
  panel: NotebookPanel,
  api: Api,
  runs: readonly IRunItem[]
): Promise<IProspect> {
  const cells = durableCells(panel, runs).filter(each => each.run && isUnfinished(each.run));
  const found: IProspect = { cells, steps: 0, cost: 0, tokens: 0, unpriced: 0 };
  for (const { run } of cells) {
    if (run) {
      const page = await api.steps(run.run, run.branch, -1, '', 0);
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

/** Ask before steps are executed that are not in the log yet. */
export async function confirm(found: IProspect, words: IWords): Promise<boolean> {
  const answer = await showDialog({
    title: words.__('Resume durable cells?'),
    body: [
      prospectText(found, words),
      words.__('Steps that are not in the log yet are executed, and model calls among them are billed.')
    ].join(' '),
    buttons: [
      Dialog.cancelButton({ label: words.__('Cancel') }),
      Dialog.okButton({ label: words.__('Resume') })
    ]
  });
  return answer.button.accept;
}

/**
 * Run what is needed, in order.
 *
 * @param flag - for the durable cells, such as `--fresh`; empty: as they are written
 * @returns whether every cell came to its end
 */
export async function resume(panel: NotebookPanel, found: IProspect, ran: Ran, flag = ''): Promise<boolean> {
  const wanted = new Set(found.cells.map(each => each.cell.model.id));
  const last = found.cells[found.cells.length - 1];
  if (!last) {
    return true;
  }
  const fresh = await isFresh(panel);
  const cells = panel.content.widgets
    .slice(0, last.index + 1)
    .filter(
      (cell): cell is CodeCell =>
        cell instanceof CodeCell && (wanted.has(cell.model.id) || !hasRun(panel, cell, ran, fresh))
    );
  if (!flag) {
    return NotebookActions.runCells(panel.content, cells, panel.sessionContext);
  }
  for (const cell of cells) {
    const done = wanted.has(cell.model.id)
      ? await runWith(panel, cell, flag)
      : await NotebookActions.runCells(panel.content, [cell], panel.sessionContext);
    if (!done) {
      return false;
    }
  }
  return true;
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
  const code = withFlag(cell.model.sharedModel.getSource(), flag);
  cell.model.sharedModel.transact(() => {
    cell.model.clearExecution();
  });
  const reply = await OutputArea.execute(code, cell.outputArea, panel.sessionContext, {
    cellId: cell.model.id
  });
  if (reply) {
    cell.model.executionCount = reply.content.execution_count;
  }
  return reply?.content.status === 'ok';
}
