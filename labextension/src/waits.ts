/** What runs wait for: which of them can go on, and how it is said. Pure. */
import { whose } from './cancelling';
import { type IState, isUnfinished, type IWords, left, moment } from './format';
import type { IRunItem, IWaitItem } from './shapes';

/** Now, as the log counts: seconds since 1970-01-01 UTC. */
export const now = (): number => Date.now() / 1000;

/** Whether the moment has come: a timer is over, a request has lapsed. */
export function isOver(wait: Pick<IWaitItem, 'until'>, at: number): boolean {
  return wait.until !== null && at >= wait.until;
}

/** Whether the run goes on when its cell runs again, as far as this wait is concerned. */
export function isDone(wait: Pick<IWaitItem, 'until' | 'answered'>, at: number): boolean {
  return wait.answered !== null || isOver(wait, at);
}

/** Whether running the cell of a run again brings it further. */
export function canGoOn(run: IRunItem, waits: readonly IWaitItem[], at: number): boolean {
  return (
    isUnfinished(run) ||
    (run.status === 'parked' && waits.some(wait => wait.run === run.run && isDone(wait, at)))
  );
}

/** Whether a person has said that a run may go on: all that was answered of it, they answered in the panel. */
export function isAgreed(run: string, waits: readonly IWaitItem[], person: string): boolean {
  const answers = waits.filter(wait => wait.run === run).flatMap(wait => wait.answered ?? []);
  return (
    person !== '' &&
    answers.length > 0 &&
    answers.every(answer => answer.via === 'panel' && answer.by === person)
  );
}

/** Which of the runs may wait for something that only the log can tell. */
export function mayWait(run: IRunItem): boolean {
  return run.status !== 'completed' && run.status !== 'failed';
}

/** What it waits for, as people say it. */
export function waitTitle(wait: Pick<IWaitItem, 'kind' | 'question' | 'signal'>, words: IWords): string {
  switch (wait.kind) {
    case 'approval':
      return wait.question;
    case 'signal':
      return words.__('signal %1', wait.signal);
    default:
      return words.__('timer');
  }
}

export function waitState(wait: Pick<IWaitItem, 'until' | 'answered'>, at: number, words: IWords): IState {
  if (wait.answered) {
    return { sign: '✓', word: words.__('answered'), tone: 'good' };
  }
  return isOver(wait, at)
    ? { sign: '✓', word: words.__('over'), tone: 'calm' }
    : { sign: '◔', word: words.__('waiting'), tone: 'warn' };
}

/** Until when, from here and by the calendar; empty: for as long as it takes. */
export function untilText(wait: Pick<IWaitItem, 'kind' | 'until'>, at: number, words: IWords): string {
  const { until, kind } = wait;
  if (until === null) {
    return '';
  }
  const when = moment(until);
  if (isOver(wait, at)) {
    return kind === 'timer'
      ? words.__('over since %1', when)
      : words.__('nobody answered until %1, and it has lapsed', when);
  }
  const rest = left(until - at);
  return kind === 'timer'
    ? words.__('goes off in %1 (%2)', rest, when)
    : words.__('lapses in %1 (%2)', rest, when);
}

const LONGEST = 140;

/** That a run asks a person, in a sentence. */
export function asksText(wait: IWaitItem, words: IWords): string {
  const name = whose(wait.run_name, wait.child);
  if (wait.kind === 'signal') {
    return words.__('Run %1 waits for the signal %2.', name, wait.signal);
  }
  const { question } = wait;
  const told = question.length > LONGEST ? `${question.slice(0, LONGEST)} …` : question;
  return words.__('Run %1 asks: %2', name, told);
}
