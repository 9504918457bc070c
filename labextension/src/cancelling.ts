/** What can be cancelled: runs, and child runs of them, which are rows of the kind `run`. Pure. */
import { type IHistory, statusOf } from './model';
import type { IRunItem, IStepRow } from './shapes';

/** Whether there is something left of a run to cancel. */
export function canCancel(run: IRunItem): boolean {
  return ['running', 'parked', 'failed', 'interrupted', 'stopped'].includes(run.status);
}

export function isChild(row: IStepRow): boolean {
  return row.kind === 'run';
}

/** Whether a row is a child run that can be cancelled: the log does so on the branch that ran last. */
export function canCancelChild(
  row: IStepRow,
  history: IHistory,
  run: IRunItem | null,
  branch: string
): boolean {
  const open = ['running', 'waiting', 'interrupted'].includes(statusOf(row, history));
  return isChild(row) && open && run !== null && canCancel(run) && run.branch === branch;
}

/** The path of a child run, or of the one that a step lies in: its name, with those of the child runs around it. */
export function childPath(row: IStepRow, history: IHistory): string {
  const names: string[] = [];
  for (let at: IStepRow | undefined = row; at; at = aboveOf(at, history)) {
    if (isChild(at)) {
      names.unshift(at.name);
    }
  }
  return names.join('/');
}

/** A run, or a child run of it, as people read it: `mails / ada`. */
export function whose(run: string, child: string): string {
  return [run, ...child.split('/').filter(Boolean)].join(' / ');
}

function aboveOf(row: IStepRow, history: IHistory): IStepRow | undefined {
  return row.parent === null || row.parent >= row.number ? undefined : history.rows.get(row.parent);
}
