import { RUN_DEEDS, STEP_DEEDS, type IActions } from '../actions';
import { canCancel, canCancelChild, childPath, whose } from '../cancelling';
import { waitingRuns } from '../components/waiting';
import { itemState, type IWords, stepState } from '../format';
import { emptyHistory, EVERYTHING, flatten, type IHistory, merge, statusOf, sums } from '../model';
import type { IStepRow, RunStatus } from '../shapes';
import type { Store } from '../store';
import { asksText, canGoOn } from '../waits';
import { page, row, runItem, waitItem } from './rows';

const words: IWords = {
  __: (text, ...values) => text.replace(/%(\d)/g, (_, i) => String(values[Number(i) - 1])),
  _n: (one, many, n) => (n === 1 ? one : many).replace('%1', String(n))
};

const ROWS: IStepRow[] = [
  row(1, { kind: 'run', name: 'book', label: 'book', status: 'running' }),
  row(2, { parent: 1, name: 'outline' }),
  row(3, { parent: 1, kind: 'run', name: 'page', label: 'page#1', status: 'waiting' }),
  row(4, { parent: 3, name: 'fetch' }),
  row(5, { parent: 4, name: 'inner' })
];

function history(running: string, rows = ROWS): IHistory {
  return merge(emptyHistory(), page(rows, { running }));
}

const at = (known: IHistory, number: number): IStepRow => known.rows.get(number) as IStepRow;

describe('a child run', () => {
  it('runs as long as anything runs its run, and is never in doubt', () => {
    const words = [history('x9'), history('')].map(known => statusOf(at(known, 1), known));

    expect(words).toEqual(['running', 'interrupted']);
    expect(statusOf(at(history(''), 3), history(''))).toBe('waiting');
  });

  it('has the path of the child runs around it, and so has what lies in it', () => {
    const known = history('');

    expect([1, 2, 3, 5].map(number => childPath(at(known, number), known))).toEqual([
      'book',
      'book',
      'book/page',
      'book/page'
    ]);
    expect(childPath(row(9), known)).toBe('');
    expect([whose('mails', ''), whose('mails', 'ada'), whose('p', 'a/b')]).toEqual([
      'mails',
      'mails / ada',
      'p / a / b'
    ]);
  });

  it('is no step where steps are counted', () => {
    const lines = flatten(history(''), EVERYTHING, new Set());

    expect(sums(history('')).steps).toBe(3);
    expect(lines.map(line => [line.row?.number ?? 0, line.level, line.below])).toEqual([
      [0, 1, 3],
      [1, 2, 3],
      [2, 3, 0],
      [3, 3, 2],
      [4, 4, 1],
      [5, 5, 0]
    ]);
  });

  it('is completed, not replayed', () => {
    expect(stepState('completed', 'replayed', words, 'run').word).toBe('completed');
    expect(stepState('completed', 'replayed', words, 'step').word).toBe('replayed');
  });

  it('can be cancelled while it is open, on the branch that ran last, of a run that is', () => {
    const known = history('');
    const can = (number: number, status: RunStatus, branch = 'r.1'): boolean =>
      canCancelChild(at(known, number), known, runItem({ status }), branch);

    expect([can(1, 'interrupted'), can(3, 'parked'), can(4, 'running')]).toEqual([true, true, false]);
    expect([can(1, 'cancelled'), can(1, 'running', 'r.0'), can(1, 'completed')]).toEqual([
      false,
      false,
      false
    ]);
    const ended = history('x1', [row(1, { kind: 'run', status: 'cancelled' })]);
    expect(canCancelChild(at(ended, 1), ended, runItem({ status: 'running' }), 'r.1')).toBe(false);
  });

  it('says whose it is when it asks', () => {
    expect(asksText(waitItem({ child: 'ada' }), words)).toBe('Run mails / ada asks: Send it?');
  });
});

describe('a run', () => {
  const STATUSES: RunStatus[] = [
    'running',
    'parked',
    'failed',
    'interrupted',
    'stopped',
    'completed',
    'cancelled',
    'undone',
    'continued'
  ];

  it('can be cancelled until it has ended', () => {
    expect(STATUSES.filter(status => canCancel(runItem({ status })))).toEqual([
      'running',
      'parked',
      'failed',
      'interrupted',
      'stopped'
    ]);
  });

  it('that was cancelled or undone is not taken up by a round of resuming, and asks nobody', () => {
    const waits = { kind: 'cancelled' as const, branch: 'r.1', branch_name: 'main', steps: [], message: 'm' };
    const runs = [
      runItem({ status: 'cancelled', waits: { ...waits, since: 1 } }),
      runItem({ status: 'undone' })
    ];

    expect(runs.map(run => canGoOn(run, [waitItem({ until: 1 })], 2))).toEqual([false, false]);
    expect(waitingRuns({ runs: { runs }, waits: [] } as unknown as Store)).toEqual([]);
    expect(runs.map(run => itemState(run, words).word)).toEqual(['cancelled', 'undone']);
    const told = [...runs, runItem({ status: 'continued' })].map(run => itemState(run, words).about ?? '');
    expect(told.filter(about => about.length > 20)).toHaveLength(3);
  });

  it('has a button to cancel it, and so has a child run, while that can be done', () => {
    const known = history('x9');
    const ids = (status: RunStatus, number: number): string[] => {
      const store = { item: runItem({ status }), history: known, shown: 'r.1' } as unknown as Store;
      const deeds = [
        ...RUN_DEEDS.filter(deed => deed.of({} as IActions, store)),
        ...STEP_DEEDS.filter(deed => deed.of({} as IActions, store, at(known, number)))
      ];
      return deeds.map(deed => deed.id).filter(id => id.startsWith('cancel'));
    };

    expect(ids('running', 1)).toEqual(['cancel', 'cancel-child']);
    expect(ids('running', 2)).toEqual(['cancel']);
    expect(ids('cancelled', 1)).toEqual([]);
  });
});
