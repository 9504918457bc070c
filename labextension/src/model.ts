/**
 * What is known of the history of one branch, and what is shown of it. Pure: no page, no server, no clock.
 *
 * The server sends rows that are new or changed; `merge` keeps the newest of each. `flatten` makes of them the lines
 * of the tree, as the panel draws them.
 */
import type { IPage, IStepRow, StepStatus } from './shapes';

/** Where the value of a step comes from. */
export type Source = 'live' | 'replayed' | 'kept' | 'recorded';

export interface IHistory {
  /** The rows, by number. Only `merge` changes it. */
  rows: Map<number, IStepRow>;
  /** The last page without its rows; `null` before the first one. */
  page: IPage | null;
  /** Rises with each change, for whoever remembers what he made of it. */
  version: number;
}

export function emptyHistory(): IHistory {
  return { rows: new Map(), page: null, version: 0 };
}

/** Where to go on asking. */
export function position(history: IHistory): { after: number; epoch: string } {
  return { after: history.page?.next ?? -1, epoch: history.page?.epoch ?? '' };
}

/**
 * Take a page in.
 *
 * @returns the history with it: the same rows object (10,000 rows are not copied for each hint), a new version if
 * anything that is shown has changed.
 */
export function merge(history: IHistory, page: IPage): IHistory {
  const rows = page.reset ? new Map<number, IStepRow>() : history.rows;
  for (const row of page.rows) {
    rows.set(row.number, row);
  }
  const before = history.page;
  const same =
    before !== null &&
    !page.reset &&
    page.rows.length === 0 &&
    before.head === page.head &&
    before.running === page.running &&
    before.newest === page.newest &&
    before.newest_status === page.newest_status &&
    JSON.stringify(before.progress) === JSON.stringify(page.progress) &&
    before.untrusted === page.untrusted &&
    before.damaged === page.damaged;
  return { rows, page: { ...page, rows: [] }, version: same ? history.version : history.version + 1 };
}

/**
 * The status of a row: a running one whose execution is gone is in doubt, without any event that would say so. The code
 * of a child run runs again with its cell, in whatever execution that is.
 */
export function statusOf(row: IStepRow, history: IHistory): StepStatus {
  if (row.kind === 'run' && (row.status === 'running' || row.status === 'interrupted')) {
    return history.page?.running ? 'running' : 'interrupted';
  }
  return row.status === 'running' && row.execution !== history.page?.running ? 'in_doubt' : row.status;
}

export function sourceOf(row: IStepRow, history: IHistory): Source {
  if (row.status === 'adopted') {
    return 'kept';
  }
  if (row.execution === history.page?.newest) {
    return 'live';
  }
  return history.page?.newest_status === 'completed' ? 'replayed' : 'recorded';
}

/** What of a history is shown. */
export interface IFilter {
  /** Words that all have to be found. */
  text: string;
  /** Only these statuses; empty: all. */
  statuses: readonly StepStatus[];
  /** Only steps of these kinds; empty: all. */
  kinds: readonly string[];
  /** Only what the newest execution executed. */
  live: boolean;
}

export const EVERYTHING: IFilter = { text: '', statuses: [], kinds: [], live: false };

export function isFiltered(filter: IFilter): boolean {
  return filter.text.trim() !== '' || filter.statuses.length > 0 || filter.kinds.length > 0 || filter.live;
}

export function matches(row: IStepRow, history: IHistory, filter: IFilter): boolean {
  if (filter.live && sourceOf(row, history) !== 'live') {
    return false;
  }
  if (filter.kinds.length > 0 && !filter.kinds.includes(row.kind)) {
    return false;
  }
  if (filter.statuses.length > 0 && !filter.statuses.includes(statusOf(row, history))) {
    return false;
  }
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    return true;
  }
  const told = [row.label, row.kind, row.why, row.usage?.model, row.error?.type, row.error?.message];
  const text = told.filter(Boolean).join(' ').toLowerCase();
  return words.every(word => text.includes(word));
}

/** One line of the tree. */
export interface ILine {
  /** Unlike that of any other line; the same over time. */
  key: string;
  /** The step; `null`: the line stands for a cell. */
  row: IStepRow | null;
  cell: string;
  /** From 1. */
  level: number;
  /** Place among its siblings, from 1, and their number. */
  place: number;
  siblings: number;
  /** Whether what is below is shown; `null`: there is nothing below. */
  expanded: boolean | null;
  /** Steps below, at any depth. */
  below: number;
  /** Does not match the filter itself; shown because something below it does. */
  faint: boolean;
  parent: string | null;
}

const stepKey = (number: number): string => `s${number}`;
const cellKey = (cell: string): string => `c${cell}`;

/** The lines of the tree, top to bottom: cells, their steps, the steps inside of these. */
export function flatten(history: IHistory, filter: IFilter, collapsed: ReadonlySet<string>): ILine[] {
  const rows = [...history.rows.values()].sort((a, b) => a.number - b.number);
  const filtered = isFiltered(filter);
  const shown = new Set<number>();
  const hits = new Set<number>();
  for (const row of rows) {
    if (filtered && !matches(row, history, filter)) {
      continue;
    }
    hits.add(row.number);
    // The steps around a hit are shown too: without them nobody knows where it belongs.
    for (let up: IStepRow | undefined = row; up && !shown.has(up.number); up = above(up, history)) {
      shown.add(up.number);
    }
  }
  const children = new Map<string, IStepRow[]>();
  const cells: string[] = [];
  for (const row of rows) {
    if (!shown.has(row.number)) {
      continue;
    }
    const parent = above(row, history);
    const key = parent ? stepKey(parent.number) : cellKey(row.cell);
    const list = children.get(key);
    if (list) {
      list.push(row);
    } else {
      children.set(key, [row]);
      if (!parent) {
        cells.push(row.cell);
      }
    }
  }
  const below = counted(children);
  const lines: ILine[] = [];
  const add = (list: readonly IStepRow[], level: number, parent: string): void => {
    list.forEach((row, i) => {
      const key = stepKey(row.number);
      const inside = children.get(key);
      // With a filter everything that matches is in sight, whatever was closed before.
      const expanded = inside ? filtered || !collapsed.has(key) : null;
      lines.push({
        key,
        row,
        cell: row.cell,
        level,
        place: i + 1,
        siblings: list.length,
        expanded,
        below: below(key),
        faint: filtered && !hits.has(row.number),
        parent
      });
      if (inside && expanded) {
        add(inside, level + 1, key);
      }
    });
  };
  cells.forEach((cell, i) => {
    const key = cellKey(cell);
    const expanded = filtered || !collapsed.has(key);
    lines.push({
      key,
      row: null,
      cell,
      level: 1,
      place: i + 1,
      siblings: cells.length,
      expanded,
      below: below(key),
      faint: false,
      parent: null
    });
    if (expanded) {
      add(children.get(key) ?? [], 2, key);
    }
  });
  return lines;
}

/** The step that a step was called in, if it is known; a damaged log may name one that is not there. */
function above(row: IStepRow, history: IHistory): IStepRow | undefined {
  return row.parent === null || row.parent >= row.number ? undefined : history.rows.get(row.parent);
}

function counted(children: ReadonlyMap<string, readonly IStepRow[]>): (key: string) => number {
  const known = new Map<string, number>();
  const count = (key: string): number => {
    let sum = known.get(key);
    if (sum === undefined) {
      const list = children.get(key) ?? [];
      // A child run is no step; what is in it is.
      sum = list.reduce((total, row) => total + (row.kind === 'run' ? 0 : 1) + count(stepKey(row.number)), 0);
      known.set(key, sum);
    }
    return sum;
  };
  return count;
}

/** How many steps were replayed or kept, and how many were executed by the newest execution. */
export function sums(history: IHistory): { steps: number; replayed: number; live: number; failed: number } {
  const sum = { steps: 0, replayed: 0, live: 0, failed: 0 };
  for (const row of history.rows.values()) {
    if (row.kind === 'run') {
      continue;
    }
    const source = sourceOf(row, history);
    sum.steps++;
    sum.live += source === 'live' ? 1 : 0;
    sum.replayed += source === 'replayed' || source === 'kept' ? 1 : 0;
    sum.failed += row.status === 'failed' ? 1 : 0;
  }
  return sum;
}

/** The next (or, with `step` -1, the previous) line of a step with the same name; `index` itself if there is none. */
export function peer(lines: readonly ILine[], index: number, step: 1 | -1): number {
  const name = lines[index]?.row?.name;
  for (let i = index + step; name !== undefined && i >= 0 && i < lines.length; i += step) {
    if (lines[i]?.row?.name === name) {
      return i;
    }
  }
  return index;
}
