/** What a branch is: where it begins anew, which variables are set on it, which sample it is. Pure. */
import { type IWords, runState } from './format';
import type { IBranchItem, IRunItem } from './shapes';

/** Characters of a value that are shown where there is little room. */
const SHORT = 24;

/** As people choose it: its name, how it stands, what it is in few words. */
export function branchText(branch: IBranchItem, run: IRunItem | null, words: IWords): string {
  const { fork, sample, set } = branch;
  return [
    branch.name,
    isUntouched(branch) ? words.__('not run yet') : runState(branch.status, words).word,
    ...(run?.next === branch.branch ? [words.__('taken up next')] : []),
    ...(fork ? [words.__('fork at %1', fork.label)] : []),
    ...Object.entries(set).map(([name, value]) => `${name} = ${cut(value, SHORT)}`),
    ...(sample ? [words.__('sample %1 of %2', sample.number, sample.of)] : [])
  ].join(' · ');
}

/** The same in sentences; none for the first branch of a run. */
export function branchSentences(branch: IBranchItem, words: IWords): string[] {
  const { fork, origin, sample, set, switched } = branch;
  const values = Object.entries(set).map(([name, value]) => `${name} = ${value}`);
  const said = [];
  if (sample) {
    said.push(words.__('Sample %1 of %2.', sample.number, sample.of));
  }
  if (fork && origin) {
    said.push(
      words.__('Forked at %1 (step %2 of %3) by %4.', fork.label, fork.number, origin.name, fork.by || '?')
    );
  } else if (origin) {
    said.push(words.__('Made from %1.', origin.name));
  }
  if (values.length > 0) {
    said.push(words.__('Set on it: %1.', values.join(', ')));
  }
  if (switched) {
    said.push(words.__('Chosen by %1.', switched));
  }
  return said;
}

/** Whether the cell has not run on it yet. */
export function isUntouched(branch: IBranchItem): boolean {
  return branch.fork !== null && branch.status === 'stopped' && branch.executions === 1;
}

/** What the next run of the cell does, as far as a person has said it. */
export function nextSentence(branch: IBranchItem, words: IWords): string {
  const { fork } = branch;
  return fork && isUntouched(branch)
    ? words.__(
        'Run the cell: it goes on from step %1 (%2) on branch %3.',
        fork.number,
        fork.label,
        branch.name
      )
    : words.__('Run the cell: it takes up branch %1.', branch.name);
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
