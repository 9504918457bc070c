/** Questions by messages: what is sent, what is made of the answers, and what is said while there is none. */
import { type Hearing, type IModel, MessageTransport, Pages } from '../messages';
import type { IHint, IPage } from '../shapes';
import { RequestError } from '../transport';
import { page, row } from './rows';

type Take = (content: unknown) => void;

class FakeModel implements IModel {
  sent: { question: string; method: string; path: string[]; parameters: object; body: unknown }[] = [];
  takers = new Map<string, Set<Take>>();
  broken = false;

  get(): unknown {
    return undefined;
  }

  send(content: unknown): void {
    if (this.broken) {
      throw new Error('Cannot send');
    }
    this.sent.push(content as (typeof this.sent)[0]);
  }

  on(event: string, take: (...values: never[]) => void): void {
    const known = this.takers.get(event) ?? new Set();
    this.takers.set(event, known.add(take as Take));
  }

  off(event: string, take: (...values: never[]) => void): void {
    this.takers.get(event)?.delete(take as Take);
  }

  fire(event: string, content?: unknown): void {
    this.takers.get(event)?.forEach(take => take(content));
  }

  answer(index: number, status: number, answer: unknown): void {
    const question = this.sent[index]?.question;
    this.fire('msg:custom', { durable: 'answer', question, status, answer: JSON.stringify(answer) });
  }

  hint(fresh: [string, object, unknown][] = []): void {
    this.fire('msg:custom', {
      durable: 'hint',
      hint: { log: '/log', run: 'r', branch: 'r.1', seq: 7, status: 'running' },
      fresh: fresh.map(([path, parameters, answer]) => ({
        path: path.split('/'),
        parameters,
        answer: JSON.stringify(answer)
      }))
    });
  }
}

let model: FakeModel;
let heard: Hearing[];
let transport: MessageTransport;

beforeEach(() => {
  jest.useFakeTimers({ now: 1_000_000 });
  model = new FakeModel();
  heard = [];
  transport = new MessageTransport(model, () => heard.push(transport.hearing));
});

afterEach(() => {
  transport.dispose();
  jest.useRealTimers();
});

describe('a question', () => {
  it('goes out with all that REST would carry, and its answer comes back', async () => {
    const asked = transport.get<{ n: number }>(['runs', 'a/b'], { notebook: 'x.ipynb', run: undefined });
    expect(model.sent).toEqual([
      {
        durable: 'ask',
        question: model.sent[0]?.question,
        method: 'GET',
        path: ['runs', 'a/b'],
        parameters: { notebook: 'x.ipynb', run: null },
        body: null
      }
    ]);
    model.answer(0, 200, { n: 1 });
    expect(await asked).toEqual({ n: 1 });
  });

  it('is told apart from others, whatever comes first', async () => {
    const first = transport.get(['runs'], {});
    const second = transport.get(['about'], {});
    model.answer(1, 200, 'second');
    model.answer(0, 200, 'first');
    expect(await Promise.all([first, second])).toEqual(['first', 'second']);
  });

  it('that is refused has the sentence and the status', async () => {
    const asked = transport.post(['sql'], {}, { query: '' });
    expect(model.sent[0]).toMatchObject({ method: 'POST', body: { query: '' } });
    model.answer(0, 422, { format: 1, message: 'It took too long.', error: 'TookTooLong' });
    const error = await asked.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toMatchObject({ message: 'It took too long.', status: 422, missing: false });
  });

  it('is asked again while nobody answers, ever more rarely, and one that says something is not', async () => {
    void transport.get(['runs'], {});
    void transport.post(['settle'], {}, { choice: 'fail' });
    jest.advanceTimersByTime(9_000);
    expect(model.sent.length).toBe(2);
    jest.advanceTimersByTime(1_000);
    expect(model.sent.map(each => each.path[0])).toEqual(['runs', 'settle', 'runs']);
    expect(model.sent[2]?.question).toBe(model.sent[0]?.question);
    jest.advanceTimersByTime(20_000);
    expect(model.sent.length).toBe(4);
    model.answer(0, 200, {});
    jest.advanceTimersByTime(3_600_000);
    expect(model.sent.length).toBe(4);
  });
});

describe('while there is no answer', () => {
  it('a kernel that was never heard may be gone', () => {
    void transport.get(['runs'], {});
    jest.advanceTimersByTime(1_400);
    expect(heard).toEqual([]);
    jest.advanceTimersByTime(100);
    expect(heard).toEqual(['silent']);
  });

  it('one that was heard is busy, until it answers', async () => {
    const first = transport.get(['about'], {});
    model.answer(0, 200, {});
    await first;
    const asked = transport.get(['runs'], {});
    jest.advanceTimersByTime(1_500);
    expect(heard).toEqual(['busy']);
    model.answer(1, 200, {});
    expect(heard).toEqual(['busy', 'fine']);
    await asked;
  });

  it('a hint says that a busy kernel is still there; without any nobody knows', () => {
    model.hint();
    void transport.get(['runs'], {});
    jest.advanceTimersByTime(50_000);
    model.hint();
    jest.advanceTimersByTime(50_000);
    expect(heard).toEqual(['busy']);
    jest.advanceTimersByTime(50_000);
    expect(heard).toEqual(['busy', 'silent']);
  });

  it('one whose connection is closed has ended, and is believed if it speaks again', () => {
    void transport.get(['runs'], {});
    model.fire('comm_live_update');
    expect(heard).toEqual(['gone']);
    model.answer(0, 200, {});
    expect(heard).toEqual(['gone', 'fine']);
  });

  it('a front end that refuses to send is no error of ours', () => {
    model.broken = true;
    void transport.get(['runs'], {});
    expect(heard).toEqual(['gone']);
  });
});

describe('hints', () => {
  it('come until the listener goes', () => {
    const hints: IHint[] = [];
    const listening = transport.listen(
      () => '',
      hint => hints.push(hint)
    );
    model.hint();
    listening.dispose();
    model.hint();
    expect(hints.map(hint => hint.seq)).toEqual([7]);
  });

  it('bring answers, which serve who asks next, once', async () => {
    model.hint([['runs', {}, { runs: ['new'] }]]);
    expect(await transport.get(['runs'], { notebook: 'x' })).toEqual({ runs: ['new'] });
    expect(model.sent).toEqual([]);
    void transport.get(['runs'], { notebook: 'x' });
    expect(model.sent.length).toBe(1);
  });

  it('bring answers, which are too old after a moment', () => {
    model.hint([['runs', {}, { runs: ['old'] }]]);
    jest.advanceTimersByTime(1_500);
    void transport.get(['runs'], {});
    expect(model.sent.length).toBe(1);
  });

  it('answer who waits already: the kernel cannot be asked while it is busy', async () => {
    const asked = transport.get(['runs'], { notebook: 'x' });
    jest.advanceTimersByTime(1_500);
    model.hint([['runs', {}, { runs: ['new'] }]]);
    expect(await asked).toEqual({ runs: ['new'] });
    expect(heard).toEqual(['silent', 'fine']);
  });

  it('bring steps, which go on from where the page is', async () => {
    const path = 'runs/r/branches/r.1/steps';
    model.hint([[path, { after: 3 }, page([row(5)], { next: 5 })]]);
    model.hint([[path, { after: 5 }, page([row(5, { status: 'failed' }), row(6)], { next: 8 })]]);
    const found = await transport.get<IPage>(path.split('/'), { after: 3, epoch: 'x1', limit: 5000 });
    expect(found.rows.map(each => [each.number, each.status])).toEqual([
      [5, 'failed'],
      [6, 'completed']
    ]);
    expect(found.next).toBe(8);
  });
});

describe('pages that came unasked', () => {
  const path = ['runs', 'r', 'branches', 'r.1', 'steps'];

  it('do not serve who knows more, or who lacks what was before them', () => {
    const pages = new Pages();
    pages.keep(path, 3, page([row(5)], { next: 5 }));
    expect(pages.take(path, { after: 5 })).toBeUndefined();
    expect(pages.take(path, { after: -1 })).toBeUndefined();
    expect(pages.take(path, { after: 4 })?.next).toBe(5);
    expect(pages.take(path, { after: 4 })).toBeUndefined();
  });

  it('begin anew after a gap: one of them was lost', () => {
    const pages = new Pages();
    pages.keep(path, 3, page([row(5)], { next: 5 }));
    pages.keep(path, 6, page([row(8)], { next: 8 }));
    expect(pages.take(path, { after: 3 })).toBeUndefined();
    expect(pages.take(path, { after: 6 })?.rows.map(each => each.number)).toEqual([8]);
  });

  it('that begin anew serve everybody, and stay such with what follows', () => {
    const pages = new Pages();
    pages.keep(path, 9, page([row(1)], { next: 2, reset: true }));
    pages.keep(path, 2, page([row(3)], { next: 4 }));
    const found = pages.take(path, { after: 3 });
    expect(found?.reset).toBe(true);
    expect(found?.rows.map(each => each.number)).toEqual([1, 3]);
  });
});
