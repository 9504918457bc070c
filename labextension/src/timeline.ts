/** Where the bars of a timeline stand. Pure. */
import type { IHistory } from './model';
import type { IStepRow } from './shapes';

export interface IBar {
  row: IStepRow;
  /** Seconds from the beginning of the timeline. */
  from: number;
  to: number;
  /** Line, from 0; bars of one line do not overlap. */
  lane: number;
  depth: number;
}

export interface ITimeline {
  bars: IBar[];
  lanes: number;
  seconds: number;
}

/** Between two executions lie nights; a gap longer than this is drawn as short as this. */
export const LONGEST_GAP = 5;

/**
 * Lay bars out: each in the first lane that is free, inner steps below the one that they were called in.
 *
 * @param now - end of what still runs (seconds since 1970)
 */
export function layOut(history: IHistory, now: number): ITimeline {
  const rows = [...history.rows.values()].sort((a, b) => a.started - b.started || a.number - b.number);
  const squeezed = squeeze(rows, now);
  const free: number[] = [];
  const lanes = new Map<number, { lane: number; depth: number }>();
  const bars: IBar[] = [];
  let seconds = 0;
  for (const row of rows) {
    const from = squeezed(row.started);
    const to = Math.max(from, squeezed(endOf(row, now)));
    const around = row.parent === null ? undefined : lanes.get(row.parent);
    let lane = around ? around.lane + 1 : 0;
    while ((free[lane] ?? 0) > from) {
      lane++;
    }
    free[lane] = Math.max(to, from + 1e-6);
    const depth = around ? around.depth + 1 : 0;
    lanes.set(row.number, { lane, depth });
    bars.push({ row, from, to, lane, depth });
    seconds = Math.max(seconds, to);
  }
  return { bars, lanes: free.length, seconds };
}

function endOf(row: IStepRow, now: number): number {
  if (row.ended !== null) {
    return row.ended;
  }
  return row.status === 'running' ? Math.max(now, row.started) : row.started;
}

/** A function from times to seconds of the timeline that cuts long pauses short. */
function squeeze(rows: readonly IStepRow[], now: number): (at: number) => number {
  const first = rows[0];
  if (!first) {
    return () => 0;
  }
  const cuts: { at: number; lost: number }[] = [];
  let reach = first.started;
  let lost = 0;
  for (const row of rows) {
    if (row.started - reach > LONGEST_GAP) {
      lost += row.started - reach - LONGEST_GAP;
      cuts.push({ at: row.started, lost });
    }
    reach = Math.max(reach, endOf(row, now));
  }
  return at => {
    let low = 0;
    let high = cuts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((cuts[middle]?.at ?? Infinity) <= at) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return at - first.started - (cuts[low - 1]?.lost ?? 0);
  };
}
