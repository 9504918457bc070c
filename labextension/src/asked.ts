/**
 * What an output says of what its cell waits for, and what of it is true. The output of a notebook may be a stranger's, or
 * old: it says which requests to look for, and what they are is asked from the log. Pure.
 */
import type { IRunItem, IWaitItem } from './shapes';
import { isOver } from './waits';

/** Type of the entry in an output: `jupyter_durable/kernel/wait_buttons.py` writes it. */
export const WAITS_MIME = 'application/vnd.jupyter-durable.waits+json';
const FORMAT = 1;
/** A cell that asks more than this at once is answered in the panel. */
const MOST = 100;

/** Which requests an output is about. */
export interface IAsked {
  run: string;
  requests: readonly string[];
}

/** What an entry says; `null`: it is none, or of a version that is not known here. */
export function readAsked(entry: unknown): IAsked | null {
  if (typeof entry !== 'object' || entry === null) {
    return null;
  }
  const { format, run, requests } = entry as Record<string, unknown>;
  if (format !== FORMAT || typeof run !== 'string' || !Array.isArray(requests)) {
    return null;
  }
  const ids = requests.filter((each): each is string => typeof each === 'string' && each !== '');
  return { run, requests: [...new Set(ids)].slice(0, MOST) };
}

/** How the requests of an output stand. */
export interface IStanding {
  /** The run, if it is one of this notebook. */
  run: IRunItem | null;
  /** What can be answered now. */
  open: IWaitItem[];
  /** What was answered or has lapsed; the run has not gone on with that yet. */
  over: IWaitItem[];
  /** How many the log does not list for this notebook (any more). */
  gone: number;
}

/**
 * @param runs - of the log of the notebook
 * @param waits - what they wait for
 * @param at - now, in seconds since 1970-01-01 UTC
 */
export function standing(
  asked: IAsked,
  runs: readonly IRunItem[],
  waits: readonly IWaitItem[],
  at: number
): IStanding {
  // A log may serve many notebooks: none of them answers for another one.
  const run = runs.find(each => each.run === asked.run && each.here) ?? null;
  const listed = run
    ? waits.filter(
        wait => wait.run === run.run && wait.kind !== 'timer' && asked.requests.includes(wait.request)
      )
    : [];
  const isOpen = (wait: IWaitItem): boolean => wait.answered === null && !isOver(wait, at);
  return {
    run,
    open: listed.filter(isOpen),
    over: listed.filter(wait => !isOpen(wait)),
    gone: asked.requests.filter(each => !listed.some(wait => wait.request === each)).length
  };
}

/** Whether the output says of a request that is not known here yet, so that the log is to be asked again. */
export function isNews(asked: IAsked, waits: readonly IWaitItem[] | null): boolean {
  return (
    waits === null ||
    asked.requests.some(each => !waits.some(wait => wait.run === asked.run && wait.request === each))
  );
}
