import { branchSentences, branchText, nextSentence } from '../branches';
import { jsonProblem } from '../jsonText';
import { emptyHistory, merge } from '../model';
import { plainWords as words } from '../plainWords';
import { countText, part, progressText } from '../progress';
import type { IProgressItem, IRunItem, IWaits } from '../shapes';
import { WaitsAsked } from '../waitsAsked';
import { branchItem, keptItem, page, runItem, waitItem } from './rows';

const FORKED = branchItem({
  branch: 'r.2',
  name: 'main-2',
  status: 'stopped',
  origin: { branch: 'r.1', name: 'main', seq: 9 },
  fork: { number: 3, label: 'write', by: 'ana' },
  set: { tone: '"warm"' }
});

describe('what a branch is', () => {
  it('is told where it is chosen, in few words', () => {
    expect(branchText(branchItem(), null, words)).toBe('main · completed');
    expect(branchText(FORKED, runItem({ next: 'r.2' }), words)).toBe(
      'main-2 · not run yet · taken up next · fork at write · tone = "warm"'
    );
    const set = { text: '"' + 'x'.repeat(100) + '"' };
    expect(branchText(branchItem({ set }), null, words)).toBe(
      `main · completed · text = "${'x'.repeat(22)}…`
    );
  });

  it('is told in sentences with who made it', () => {
    expect(branchSentences(branchItem(), words)).toEqual([]);
    expect(branchSentences(FORKED, words)).toEqual([
      'Forked at write (step 3 of main) by ana.',
      'Set on it: tone = "warm".'
    ]);
    const sample = { number: 2, of: 5, first: 'r.1', value: '' };
    expect(branchSentences(branchItem({ sample, switched: 'eve' }), words)).toEqual([
      'Sample 2 of 5.',
      'Chosen by eve.'
    ]);
    const origin = { branch: 'r.1', name: 'main', seq: 9 };
    expect(branchSentences(branchItem({ origin }), words)).toEqual(['Made from main.']);
  });

  it('says what the next run does', () => {
    expect(nextSentence(FORKED, words)).toBe(
      'Run the cell: it goes on from step 3 (write) on branch main-2.'
    );
    expect(nextSentence({ ...FORKED, executions: 2 }, words)).toBe(
      'Run the cell: it takes up branch main-2.'
    );
  });
});

describe('how far something is', () => {
  const item = (done: number, total: number | null, text = ''): IProgressItem => ({ done, total, text });

  it('is a count with what is counted', () => {
    expect(progressText(item(3, 10, 'pages'))).toBe('3/10 pages');
    expect(progressText(item(7, null, 'rows'))).toBe('7 rows');
    expect(countText(item(1 / 3, 1, 'rows'))).toBe('0.333333/1');
  });

  it('is a part of the whole, whatever a program says', () => {
    expect([item(3, 10), item(12, 10), item(-1, 10), item(1, 0), item(7, null)].map(part)).toEqual([
      0.3,
      1,
      0,
      null,
      null
    ]);
  });

  it('of a cell is drawn anew when it alone has changed', () => {
    const before = merge(emptyHistory(), page([], { progress: item(1, 4) }));
    expect(merge(before, page([], { progress: item(1, 4) })).version).toBe(before.version);
    expect(merge(before, page([], { progress: item(2, 4) })).version).toBe(before.version + 1);
  });
});

describe('JSON that is typed', () => {
  it('is said to be none before it is sent', () => {
    expect(jsonProblem('{"sum": 3}', words)).toBe('');
    expect(jsonProblem("{'sum': 3}", words)).toContain('This is no JSON');
    expect(jsonProblem(' ', words)).toContain('Write the value');
  });
});

describe('asking what runs wait for', () => {
  let asked = 0;
  let answer: Pick<IWaits, 'waits' | 'kept'> = { waits: [], kept: [] };
  const api = {
    waiting: (): Promise<IWaits> => {
      asked++;
      return Promise.resolve({ format: 1, log: '/log', ...answer });
    }
  };
  const round = async (waits: WaitsAsked, run: IRunItem): Promise<number> => {
    asked = 0;
    waits.note(await waits.ask(api, [run]));
    return asked;
  };

  it('is done once for a run that waits for nothing, until something happens in it', async () => {
    const waits = new WaitsAsked();
    answer = { waits: [], kept: [] };
    expect(await round(waits, runItem({ status: 'running', head: 1 }))).toBe(1);
    expect(await round(waits, runItem({ status: 'running', head: 1 }))).toBe(0);
    expect(await round(waits, runItem({ status: 'running', head: 2 }))).toBe(1);
    expect(await round(waits, runItem({ status: 'completed', head: 3 }))).toBe(0);
  });

  it('is done again for one that waits, and for one that signals are kept for or were sent to', async () => {
    const waits = new WaitsAsked();
    answer = { waits: [waitItem()], kept: [] };
    expect(await round(waits, runItem({ status: 'parked' }))).toBe(1);
    expect(await round(waits, runItem({ status: 'parked' }))).toBe(1);
    answer = { waits: [], kept: [keptItem()] };
    expect(await round(waits, runItem({ status: 'parked' }))).toBe(1);
    expect(await round(waits, runItem({ status: 'completed' }))).toBe(1);
    answer = { waits: [], kept: [] };
    expect(await round(waits, runItem({ status: 'completed' }))).toBe(1);
    expect(await round(waits, runItem({ status: 'completed' }))).toBe(0);
    waits.again('r');
    expect(await round(waits, runItem({ status: 'completed' }))).toBe(1);
    expect(await round(waits, runItem({ status: 'completed' }))).toBe(0);
  });
});
