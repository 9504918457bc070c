/** What running a cell again from a step on, or from its beginning, would execute again: said before it costs. */
import type { Api } from './api';
import { usedBy } from './format';
import type { IStepRow } from './shapes';

/** Kinds of steps that have an effect or a price. */
const COUNTED = ['step', 'model', 'tool'];
const PAGE = 5000;

export interface IAgain {
  steps: number;
  /** Of them: begun, and nobody knows how they ended. */
  doubt: number;
  cost: number;
  tokens: number;
  unpriced: number;
}

/** What of these rows would be executed again. Pure. */
export function againOf(rows: Iterable<IStepRow>, from: number): IAgain {
  const sum: IAgain = { steps: 0, doubt: 0, cost: 0, tokens: 0, unpriced: 0 };
  for (const row of rows) {
    if (row.number < from || !COUNTED.includes(row.kind)) {
      continue;
    }
    sum.steps++;
    sum.doubt += row.status === 'in_doubt' || row.status === 'running' ? 1 : 0;
    const used = usedBy(row);
    const tokens = (used?.input ?? 0) + (used?.output ?? 0);
    sum.tokens += tokens;
    sum.cost += used?.cost ?? 0;
    sum.unpriced += used && used.cost === null && tokens > 0 ? 1 : 0;
  }
  return sum;
}

export function sumOf(parts: readonly IAgain[]): IAgain {
  const sum: IAgain = { steps: 0, doubt: 0, cost: 0, tokens: 0, unpriced: 0 };
  for (const part of parts) {
    sum.steps += part.steps;
    sum.doubt += part.doubt;
    sum.cost += part.cost;
    sum.tokens += part.tokens;
    sum.unpriced += part.unpriced;
  }
  return sum;
}

/** Look a branch through. */
export async function again(api: Api, run: string, branch: string, from: number): Promise<IAgain> {
  const rows = new Map<number, IStepRow>();
  for (let after = -1, epoch = '', more = true; more;) {
    const page = await api.steps(run, branch, after, epoch, PAGE);
    if (page.reset) {
      rows.clear();
    }
    page.rows.forEach(row => rows.set(row.number, row));
    ({ next: after, epoch, more } = page);
  }
  return againOf(rows.values(), from);
}
