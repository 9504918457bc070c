/** @jest-environment jsdom */
import { Signal } from '@lumino/signaling';
import { Api } from '../api';
import { NotebookWaits } from '../notebookWaits';
import type { IHint, IRuns } from '../shapes';
import type { ITransport } from '../transport';
import { waitItem } from './rows';

/** A store that shows one notebook, and a server that counts what it is asked about which. */
function parts(): {
  waits: NotebookWaits;
  store: ConstructorParameters<typeof NotebookWaits>[0] & { emit: () => void };
  questions: string[];
  hint: (hint: Partial<IHint>) => void;
  listening: () => number;
} {
  const questions: string[] = [];
  const slots = new Set<(hint: IHint) => void>();
  const transport = {
    get: async (path: string[], parameters: Record<string, unknown>) => {
      questions.push(`${path.join('/')} ${String(parameters['notebook'])}`);
      return { about: { hints: 'h', log: '/log' }, runs: { runs: [] }, waiting: { waits: [waitItem()] } }[
        path[0] ?? ''
      ];
    },
    listen: (_: () => string, take: (hint: IHint) => void) => {
      slots.add(take);
      return { isDisposed: false, dispose: () => slots.delete(take) };
    }
  } as unknown as ITransport;
  const owner = {};
  const changed = new Signal<object, void>(owner);
  const store = {
    api: new Api(transport, 'front.ipynb'),
    runs: { runs: [] } as unknown as IRuns,
    waits: [waitItem({ request: 'of the store' })],
    interval: 60_000,
    changed,
    refresh: jest.fn(async () => undefined),
    emit: () => changed.emit()
  };
  const known = store as unknown as ConstructorParameters<typeof NotebookWaits>[0] & { emit: () => void };
  const waits = new NotebookWaits(known, transport, () => path.now);
  return {
    waits,
    store: known,
    questions,
    hint: hint => slots.forEach(slot => slot(hint as IHint)),
    listening: () => slots.size
  };
}

const path = { now: '' };

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

describe('what the runs of a notebook wait for', () => {
  it('is that of the store while the notebook is in front: nothing is asked twice', async () => {
    path.now = 'front.ipynb';
    const { waits, store, questions } = parts();
    waits.enter();
    expect(waits.waits?.[0]?.request).toBe('of the store');
    await waits.refresh();
    expect(store.refresh).toHaveBeenCalledTimes(1);
    expect(questions).toEqual([]);
    let told = 0;
    waits.changed.connect(() => told++);
    store.emit();
    expect(told).toBe(0);
    store.waits = [];
    store.emit();
    expect(told).toBe(1);
    expect(waits.waits).toEqual([]);
    waits.leave();
  });

  it('is asked of the log of the notebook behind it, and again on a hint about that log', async () => {
    path.now = 'behind.ipynb';
    const { waits, questions, hint, listening } = parts();
    waits.enter();
    await jest.advanceTimersByTimeAsync(1);
    expect(questions).toEqual(['about behind.ipynb', 'runs behind.ipynb', 'waiting behind.ipynb']);
    expect(waits.waits?.[0]?.request).toBe(waitItem().request);
    hint({ log: '/another' });
    await jest.advanceTimersByTimeAsync(500);
    expect(questions.length).toBe(3);
    hint({ log: '/log' });
    hint({ log: '/log' });
    await jest.advanceTimersByTimeAsync(500);
    expect(questions.length).toBe(6);
    waits.enter();
    waits.leave();
    expect(listening()).toBe(1);
    waits.leave();
    expect(listening()).toBe(0);
  });

  it('is asked under the new name once the notebook was moved', async () => {
    path.now = 'behind.ipynb';
    const { waits, questions } = parts();
    await waits.refresh();
    path.now = 'moved.ipynb';
    await waits.refresh();
    expect(questions.at(-1)).toBe('waiting moved.ipynb');
  });
});
