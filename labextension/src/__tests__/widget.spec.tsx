/**
 * The panel drawn into an element, with a kernel that is played by the test.
 *
 * @jest-environment jsdom
 */
import { act } from 'react';
import { render } from '../widget';
import { page, row } from './rows';

type Take = (content: unknown) => void;

const RUN = {
  run: 'r',
  name: 'reading-list',
  status: 'running',
  branch: 'r.1',
  branch_name: 'main',
  branches: 1,
  executions: 1,
  replayed: null,
  live: null,
  started: 1,
  ended: null,
  head: 1,
  notebook: '/n.ipynb',
  here: true,
  cell: 'c',
  error: null,
  waits: null
};

/** The side of the kernel; it can be made to keep silent. */
class Kernel {
  takers = new Map<string, Set<Take>>();
  traits: Record<string, unknown> = { height: 333, notebook: '/n.ipynb', run: '' };
  rows = [row(1, { label: 'look up' })];
  silent = false;
  status = 'running';
  asked: string[] = [];

  readonly model = {
    get: (name: string): unknown => this.traits[name],
    on: (event: string, take: (...values: never[]) => void): void => {
      this.takers.set(event, (this.takers.get(event) ?? new Set()).add(take as Take));
    },
    off: (event: string, take: (...values: never[]) => void): void => {
      this.takers.get(event)?.delete(take as Take);
    },
    send: (content: unknown): void => {
      const { question, path } = content as { question: string; path: string[] };
      this.asked.push(path.join('/'));
      if (!this.silent) {
        const answer = JSON.stringify(this.answer(path));
        this.fire('msg:custom', { durable: 'answer', question, status: 200, answer });
      }
    }
  };

  fire(event: string, content?: unknown): void {
    [...(this.takers.get(event) ?? [])].forEach(take => take(content));
  }

  answer(path: string[]): unknown {
    const run = { ...RUN, status: this.status };
    switch (path.length) {
      case 1:
        return path[0] === 'about'
          ? { format: 1, log: '/log', exists: true, hints: '' }
          : { format: 1, log: '/log', exists: true, runs: [run], unreadable: [] };
      case 2:
        return { format: 1, log: '/log', run, branches: [], executions: [] };
      default:
        return page(this.rows, { next: this.rows.length, running: 'x1', newest: 'x1' });
    }
  }
}

let kernel: Kernel;
let el: HTMLElement;

beforeAll(() => {
  Object.assign(globalThis, {
    IS_REACT_ACT_ENVIRONMENT: true,
    ResizeObserver: class {
      observe(): void {
        // jsdom lays nothing out.
      }
      disconnect(): void {
        // Nothing to end.
      }
    },
    matchMedia: () => ({
      matches: false,
      addEventListener: () => undefined,
      removeEventListener: () => undefined
    })
  });
});

beforeEach(() => {
  jest.useFakeTimers();
  kernel = new Kernel();
  el = document.createElement('div');
  document.body.append(el);
});

afterEach(() => {
  jest.useRealTimers();
  el.remove();
});

async function drawn(): Promise<() => void> {
  let end = (): void => undefined;
  await act(async () => {
    end = render({ model: kernel.model, el });
    await jest.advanceTimersByTimeAsync(0);
  });
  return end;
}

const text = (): string => el.textContent ?? '';
const later = (milliseconds: number): Promise<void> =>
  act(async () => {
    await jest.advanceTimersByTimeAsync(milliseconds);
  });

it('shows the run and its steps at the height that is asked for, and no button that does nothing', async () => {
  const end = await drawn();
  expect(text()).toContain('reading-list');
  expect(text()).toContain('look up');
  expect(el.querySelector<HTMLElement>('.jp-Durable')?.style.height).toBe('333px');
  expect([...el.querySelectorAll('button')].map(each => each.textContent)).toEqual([
    'Timeline',
    'Compare',
    'Spend',
    'SQL'
  ]);
  act(end);
});

it('follows the height and shows new steps when the kernel hints at them', async () => {
  const end = await drawn();
  kernel.traits['height'] = 500;
  kernel.fire('change:height');
  expect(el.querySelector<HTMLElement>('.jp-Durable')?.style.height).toBe('500px');
  kernel.rows = [...kernel.rows, row(2, { label: 'write down' })];
  kernel.fire('msg:custom', {
    durable: 'hint',
    hint: { log: '/log', run: 'r', branch: 'r.1', seq: 9, status: 'running' },
    fresh: []
  });
  await later(200);
  expect(text()).toContain('write down');
  act(end);
});

it('says that the kernel does not answer, and shows the steps when it does', async () => {
  kernel.silent = true;
  const end = await drawn();
  expect(text()).toContain('Loading');
  await later(1_500);
  expect(text()).toContain('No answer from the kernel');
  expect(el.querySelector('[role=alert]')).toBeNull();
  kernel.silent = false;
  await later(10_000);
  expect(text()).toContain('look up');
  expect(text()).not.toContain('No answer');
  act(end);
});

it('says that its kernel has ended, and keeps what it showed', async () => {
  const end = await drawn();
  act(() => kernel.fire('comm_live_update'));
  expect(text()).toContain('The kernel of this panel has ended');
  expect(text()).toContain('look up');
  act(end);
});

it('says aloud how a run ended, once', async () => {
  const end = await drawn();
  const live = el.querySelector('[aria-live=polite]');
  expect(live?.textContent).toBe('');
  kernel.status = 'completed';
  kernel.fire('msg:custom', {
    durable: 'hint',
    hint: { log: '/log', run: 'r', branch: 'r.1', seq: 9, status: 'completed' },
    fresh: []
  });
  await later(200);
  expect(live?.textContent).toBe('Run reading-list: completed.');
  act(end);
});

it('leaves nothing behind when it is removed', async () => {
  const end = await drawn();
  act(end);
  const asked = kernel.asked.length;
  await later(60_000);
  expect(el.innerHTML).toBe('');
  expect(kernel.asked.length).toBe(asked);
  expect([...kernel.takers.values()].map(each => each.size)).toEqual([0, 0, 0]);
});
