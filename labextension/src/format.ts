/** Numbers and states as people read them. Pure; sentences come from the translator that is handed in. */
import type { IRunItem, IStepRow, ITotals, IUsageItem, RunStatus, StepStatus } from './shapes';
import type { Source } from './model';

/** As much of JupyterLab's translator as is needed here. */
export interface IWords {
  __(text: string, ...values: unknown[]): string;
  /** `%1` in the text is the count, further values are `%2` and on. */
  _n(one: string, many: string, count: number, ...values: unknown[]): string;
}

export function duration(seconds: number | null): string {
  if (seconds === null) {
    return '';
  }
  if (seconds < 0.0005) {
    return '<1 ms';
  }
  if (seconds < 1) {
    return `${Math.round(seconds * 1000)} ms`;
  }
  if (seconds < 60) {
    return `${seconds.toFixed(1)} s`;
  }
  const minutes = Math.floor(Math.round(seconds) / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds) % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** What is left of a wait: seconds do not matter where days are meant. */
export function left(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) {
    return `${whole} s`;
  }
  const minutes = Math.round(whole / 60);
  if (minutes < 60) {
    return `${minutes} min`;
  }
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Dollars: two digits, more where two would say nothing. */
export function money(dollars: number): string {
  if (dollars === 0 || dollars >= 0.01) {
    return `$${dollars.toFixed(2)}`;
  }
  return dollars < 0.0001 ? '<$0.0001' : `$${dollars.toFixed(4)}`;
}

export function count(n: number): string {
  if (n < 10_000) {
    return String(n);
  }
  return n < 1_000_000 ? `${(n / 1000).toFixed(n < 100_000 ? 1 : 0)}k` : `${(n / 1_000_000).toFixed(1)}M`;
}

export function bytes(n: number): string {
  if (n < 1024) {
    return `${n} B`;
  }
  return n < 1024 * 1024 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1024 / 1024).toFixed(1)} MiB`;
}

export function moment(seconds: number): string {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'medium' });
}

/** What was spent, as far as it is known: money where there are prices, else tokens. */
export function spentText(totals: Pick<ITotals, 'cost' | 'tokens' | 'unpriced'>, words: IWords): string {
  const priced = totals.cost > 0 || totals.unpriced === 0;
  return priced ? money(totals.cost) : words.__('%1 tokens', count(totals.tokens));
}

/** What a row cost, wherever it was billed: a step that was taken over has told nothing here. */
export function usedBy(row: IStepRow): IUsageItem | null {
  const { usage, saved } = row;
  const told = usage && (usage.input !== null || usage.output !== null || usage.cost !== null);
  return told ? usage : (saved ?? usage);
}

/** Tokens and money of a row, short; empty where nothing is known. */
export function usageText(row: IStepRow, words: IWords): string {
  const usage = usedBy(row);
  if (!usage) {
    return '';
  }
  const tokens =
    usage.input === null && usage.output === null ? null : (usage.input ?? 0) + (usage.output ?? 0);
  const told = tokens === null ? [] : [words.__('%1 tok', count(tokens))];
  return [...told, ...(usage.cost === null ? [] : [money(usage.cost)])].join(' · ');
}

/** A state as a sign and a word: the sign is decoration, the word is what is read aloud. */
export interface IState {
  sign: string;
  word: string;
  /** Ending of the class that gives it its colour. */
  tone: 'good' | 'busy' | 'bad' | 'warn' | 'calm';
  /** What the word means, where that is not plain. */
  about?: string;
}

/**
 * @param kind - of the step: a child run is executed again with its cell, so it is not said to be replayed
 */
export function stepState(status: StepStatus, source: Source, words: IWords, kind = 'step'): IState {
  switch (status) {
    case 'running':
      return { sign: '▶', word: words.__('running'), tone: 'busy' };
    case 'waiting':
      return { sign: '◔', word: words.__('waiting'), tone: 'warn' };
    case 'in_doubt':
      return { sign: '?', word: words.__('in doubt'), tone: 'warn' };
    case 'interrupted':
      return { sign: '‖', word: words.__('interrupted'), tone: 'warn' };
    case 'failed':
      return { sign: '✕', word: words.__('failed'), tone: 'bad' };
    case 'cancelled':
      return { sign: '–', word: words.__('cancelled'), tone: 'calm' };
    case 'not_stored':
      return { sign: '△', word: words.__('value not stored'), tone: 'warn' };
    case 'adopted':
      return { sign: '↪', word: words.__('kept'), tone: 'calm' };
    default:
      if (kind === 'run') {
        return { sign: '✓', word: words.__('completed'), tone: 'good' };
      }
      return source === 'replayed'
        ? { sign: '↻', word: words.__('replayed'), tone: 'calm' }
        : { sign: '✓', word: source === 'live' ? words.__('new') : words.__('recorded'), tone: 'good' };
  }
}

export function runState(status: RunStatus, words: IWords): IState {
  switch (status) {
    case 'running':
      return { sign: '▶', word: words.__('running'), tone: 'busy' };
    case 'completed':
      return { sign: '✓', word: words.__('completed'), tone: 'good' };
    case 'failed':
      return { sign: '✕', word: words.__('failed'), tone: 'bad' };
    case 'interrupted':
      return { sign: '‖', word: words.__('interrupted'), tone: 'warn' };
    case 'continued':
      return {
        sign: '↻',
        word: words.__('continued'),
        tone: 'warn',
        about: words.__(
          'It has handed its state on (durable.continue_as_new): the run begins anew with that.'
        )
      };
    case 'parked':
      return { sign: '◔', word: words.__('parked'), tone: 'warn' };
    case 'undone':
      return {
        sign: '↶',
        word: words.__('undone'),
        tone: 'calm',
        about: words.__('A person has undone what it did: nothing of it is replayed or continued.')
      };
    case 'cancelled':
      return {
        sign: '–',
        word: words.__('cancelled'),
        tone: 'calm',
        about: words.__('Somebody has cancelled it: it goes on only when it is resumed.')
      };
    default:
      return { sign: '△', word: words.__('needs a decision'), tone: 'warn' };
  }
}

/** The state of a run: of one that stopped, what it waits for says more. */
export function itemState(run: IRunItem, words: IWords): IState {
  if (run.status === 'stopped' && run.waits?.kind === 'resume') {
    return { sign: '‖', word: words.__('to be resumed'), tone: 'warn' };
  }
  if (run.status === 'stopped' && run.waits?.kind === 'read') {
    return { sign: '△', word: words.__('stopped'), tone: 'warn' };
  }
  return runState(run.status, words);
}

/** What a run waits for, short. */
export function waitsText(run: IRunItem, words: IWords): string {
  const steps = run.waits?.steps.map(step => step.label).join(', ') ?? '';
  switch (run.waits?.kind) {
    case 'settle':
      return words.__('say what happened to %1', steps);
    case 'decide':
      return words.__('after an edit: say what becomes of %1', steps);
    case 'resume':
      return words.__('can be resumed');
    case 'answer':
      return words.__('waits for an answer');
    case 'timer':
      return words.__('waits for a timer');
    default:
      return words.__('stopped; see why');
  }
}

/** What a person wants to know of a row's source: was it bought just now, and if not, where does it come from? */
export function sourceText(row: IStepRow, source: Source, words: IWords): string {
  if (row.kind === 'run') {
    return words.__(
      'A part of the run, with a name of its own. Its code runs again with the cell, and what is recorded in it comes back.'
    );
  }
  if (row.status === 'in_doubt') {
    return words.__('It was begun, and its end is not known.');
  }
  switch (source) {
    case 'kept':
      return words.__('Taken over from another branch; not executed, not paid again.');
    case 'replayed':
      return words.__('Came back from the log; not executed, not paid again.');
    case 'live':
      return row.why
        ? words.__('Executed: %1', row.why)
        : words.__('Executed, because it was not in the log yet.');
    default:
      return words.__('Recorded by an earlier execution; running the cell again replays it.');
  }
}

/** Runs that running their cells again would bring further. */
export function isUnfinished(run: IRunItem): boolean {
  return ['interrupted', 'failed', 'stopped', 'continued'].includes(run.status);
}

/** Text of a terminal without its colours. */
export function plain(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, '').replace(/\u001b\][^\u0007]*\u0007/g, '');
}
