/**
 * The panel drawn into an element, with a kernel that is played by the test.
 *
 * @jest-environment jsdom
 */
import { act } from 'react';
import { render } from '../widget';
import type { IAnswerQuestion, IWaitItem } from '../shapes';
import { page, row, waitItem } from './rows';

type Take = (content: unknown) => void;

const RUN = {
  run: 'r',
  name: 'reading-list',
  status: 'running',
  branch: 'r.1',
  branch_name: 'main',
  next: '',
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
  cancelled: unknown[] = [];
  waits: IWaitItem[] = [];
  head = 1;
  /** What was answered, and what is said to it. */
  answered: IAnswerQuestion[] = [];
  refusal = '';

  readonly model = {
    get: (name: string): unknown => this.traits[name],
    on: (event: string, take: (...values: never[]) => void): void => {
      this.takers.set(event, (this.takers.get(event) ?? new Set()).add(take as Take));
    },
    off: (event: string, take: (...values: never[]) => void): void => {
      this.takers.get(event)?.delete(take as Take);
    },
    send: (content: unknown): void => {
      const { question, path, body } = content as { question: string; path: string[]; body?: unknown };
      this.asked.push(path.join('/'));
      if (!this.silent) {
        const refused = path[0] === 'answer' && this.refusal !== '';
        if (path[0] === 'cancel') {
          this.cancelled.push(body);
        }
        if (path[0] === 'answer') {
          this.answered.push(body as IAnswerQuestion);
        }
        const answer = JSON.stringify(refused ? { format: 1, message: this.refusal } : this.answer(path));
        this.fire('msg:custom', { durable: 'answer', question, status: refused ? 400 : 200, answer });
      }
    }
  };

  fire(event: string, content?: unknown): void {
    [...(this.takers.get(event) ?? [])].forEach(take => take(content));
  }

  answer(path: string[]): unknown {
    const run = { ...RUN, status: this.status, head: this.head };
    if (path[0] === 'waiting') {
      return { format: 1, log: '/log', waits: this.waits, kept: [] };
    }
    if (path[0] === 'cancel') {
      return { format: 1, message: 'It ends at its next await or step.' };
    }
    if (path[0] === 'answer') {
      return { format: 1, message: 'Answered. Run the cell again to go on.' };
    }
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
    'SQL',
    'Send a signal …',
    'Cancel …'
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

it('shows how far a running step is while the kernel cannot be asked', async () => {
  const end = await drawn();
  kernel.silent = true;
  const progress = { done: 3, total: 10, text: 'pages' };
  const fresh = page([row(1, { label: 'look up', status: 'running', progress, missed: 'Not heard of.' })], {
    next: 2,
    running: 'x1',
    newest: 'x1',
    progress: { done: 1, total: null, text: 'rounds' }
  });
  const path = ['runs', 'r', 'branches', 'r.1', 'steps'];
  const run = kernel.answer(['runs', 'r']);
  kernel.fire('msg:custom', {
    durable: 'hint',
    hint: { log: '/log', run: 'r', branch: 'r.1', seq: 9, status: 'running' },
    fresh: [
      { path: ['runs'], parameters: {}, answer: JSON.stringify(kernel.answer(['runs'])) },
      { path: ['runs', 'r'], parameters: {}, answer: JSON.stringify(run) },
      { path, parameters: { after: 1 }, answer: JSON.stringify(fresh) }
    ]
  });
  await later(200);
  const bars = [...el.querySelectorAll('[role=progressbar]')];
  expect(bars.map(each => each.getAttribute('aria-valuetext'))).toEqual(['1 rounds', '3/10 pages']);
  expect(bars.map(each => each.getAttribute('aria-valuenow'))).toEqual([null, '30']);
  const line = el.querySelector('[role=treeitem][aria-label^="look up"]');
  expect(line?.getAttribute('aria-label')).toBe('look up, running, 3/10 pages, not heard of, 1.0 s');
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

const hint = (status: string): void =>
  kernel.fire('msg:custom', {
    durable: 'hint',
    hint: { log: '/log', run: 'r', branch: 'r.1', seq: kernel.head, status },
    fresh: []
  });
const buttons = (name: string): HTMLButtonElement[] =>
  [...el.querySelectorAll('button')].filter(each => each.textContent === name);

it('asks what runs wait for while something may wait, and not again before something has happened', async () => {
  const asked = (): number => kernel.asked.filter(each => each === 'waiting').length;
  const end = await drawn();
  expect(asked()).toBe(1);
  hint('running');
  await later(200);
  expect(asked()).toBe(1);
  kernel.head = 2;
  hint('running');
  await later(200);
  expect(asked()).toBe(2);
  kernel.head = 3;
  kernel.status = 'completed';
  hint('completed');
  await later(200);
  expect(asked()).toBe(2);
  act(end);
});

it('answers a question through its transport, says what is refused, and says the question aloud once', async () => {
  const end = await drawn();
  const live = el.querySelector('[aria-live=polite]');
  kernel.head = 2;
  kernel.status = 'parked';
  kernel.waits = [waitItem({ question: 'Send <b>it</b>?' })];
  hint('parked');
  await later(200);
  expect(text()).toContain('1 waiting');
  expect(live?.textContent).toBe('Run mails asks: Send <b>it</b>?');
  expect(el.querySelector('.jp-Durable-wait b')).toBeNull();

  kernel.refusal = 'Request 3 of run `mails` was answered already by eve.';
  await act(async () => {
    buttons('Yes')[0]?.click();
    await jest.advanceTimersByTimeAsync(0);
  });
  expect(kernel.answered).toEqual([{ run: 'r', request: 'q1', value: true }]);
  expect(el.querySelector('.jp-Durable-wait [role=alert]')?.textContent).toContain('already by eve');

  kernel.refusal = '';
  buttons('No')[0]?.focus();
  kernel.waits = [{ ...kernel.waits[0]!, answered: { by: 'ana', via: 'panel', at: 5 } }];
  await act(async () => {
    buttons('No')[0]?.click();
    await jest.advanceTimersByTimeAsync(0);
  });
  expect(kernel.answered[1]?.value).toBe(false);
  expect(text()).toContain('Answered by ana (panel)');
  expect(text()).toContain('Run its cell again to go on.');
  expect(el.querySelector('[role=alert]')).toBeNull();
  expect(buttons('Yes')).toEqual([]);
  // What had the focus is gone: it is at what became of the question.
  expect((document.activeElement as HTMLElement).dataset['request']).toBe('q1');

  // The run has gone on: the section goes, and the focus is at the steps.
  kernel.waits = [];
  kernel.head = 3;
  kernel.status = 'completed';
  hint('completed');
  await later(200);
  expect(el.querySelector('.jp-Durable-waiting')).toBeNull();
  expect(document.activeElement?.getAttribute('role')).toBe('treeitem');
  act(end);
});

it('sends what a form of a schema makes, once it is right', async () => {
  kernel.status = 'parked';
  kernel.waits = [
    waitItem({
      kind: 'signal',
      signal: 'payment',
      question: '',
      schema: { type: 'object', required: ['sum'], properties: { sum: { type: 'number' } } }
    })
  ];
  const end = await drawn();
  const field = el.querySelector<HTMLInputElement>('[data-field="0"]');
  const write = (value: string): void => {
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')?.set;
    act(() => {
      set?.call(field, value);
      field?.dispatchEvent(new Event('input', { bubbles: true }));
    });
  };
  const send = (): Promise<void> =>
    act(async () => {
      buttons('Send')[0]?.click();
      await jest.advanceTimersByTimeAsync(0);
    });
  write('much');
  await send();
  expect(kernel.answered).toEqual([]);
  expect(field?.getAttribute('aria-invalid')).toBe('true');
  expect(el.querySelector('[role=alert]')?.textContent).toBe('This must be a number.');
  write('3.5');
  expect(field?.getAttribute('aria-invalid')).toBe('false');
  await send();
  expect(kernel.answered).toEqual([{ run: 'r', request: 'q1', value: { sum: 3.5 } }]);
  act(end);
});

it('cancels the run by a message, and shows what is said to it', async () => {
  const end = await drawn();
  act(() => buttons('Cancel …')[0]?.click());
  expect(el.querySelector('form')?.getAttribute('aria-label')).toBe('Cancel reading-list');
  await act(async () => {
    buttons('Cancel the run')[0]?.click();
    await jest.advanceTimersByTimeAsync(0);
  });
  expect(kernel.cancelled).toEqual([{ run: 'r', child: '', reason: '' }]);
  expect(text()).toContain('It ends at its next await or step.');
  expect(el.querySelector('form')).toBeNull();
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
