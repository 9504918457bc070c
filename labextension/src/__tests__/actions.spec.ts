import { againOf } from '../again';
import { aheadSentences, type IAhead } from '../ahead';
import { Heard, news } from '../announce';
import { codeOf } from '../code';
import { itemState, type IWords, waitsText } from '../format';
import { findHeader, hasFlag, withFlag } from '../header';
import type { IRunItem, IStepDetail, IWaiting } from '../shapes';
import { row } from './rows';

const words: IWords = {
  __: (text, ...values) => text.replace(/%(\d)/g, (_, i) => String(values[Number(i) - 1])),
  _n: (one, many, n, ...values) =>
    (n === 1 ? one : many).replace(/%(\d)/g, (_, i) => String([n, ...values][Number(i) - 1]))
};

function run(changed: Partial<IRunItem>): IRunItem {
  return {
    run: 'r1',
    name: 'review',
    status: 'running',
    branch: 'r1.1',
    branch_name: 'main',
    next: '',
    branches: 1,
    executions: 1,
    replayed: 0,
    live: 1,
    started: 1,
    ended: null,
    head: 1,
    notebook: 'a.ipynb',
    here: true,
    cell: 'c',
    error: null,
    waits: null,
    ...changed
  };
}

function waits(kind: IWaiting['kind'], labels: string[] = []): IWaiting {
  const steps = labels.map((label, i) => ({ number: i, name: label, label }));
  return { kind, branch: 'r1.1', branch_name: 'main', steps, message: 'm', since: 2 };
}

describe('what is said aloud', () => {
  it('is nothing for what was there before', () => {
    expect(news(new Heard(), [run({ status: 'completed' })], words)).toEqual([]);
  });

  it('is each end once, and no step', () => {
    const heard = new Heard();
    const said = [
      run({}),
      run({ head: 2 }),
      run({ head: 3 }),
      run({ status: 'completed', ended: 4 }),
      run({ status: 'completed', ended: 4, head: 5 })
    ].map(each => news(heard, [each], words));

    expect(said).toEqual([[], [], [], ['Run review: completed.'], []]);
  });

  it('tells that a run waits for a person, and of a run that nobody saw running', () => {
    const heard = new Heard();
    news(heard, [], words);

    expect(news(heard, [run({ status: 'stopped', waits: waits('settle', ['pay']) })], words)).toEqual([
      'Run review waits for you.'
    ]);
    expect(news(heard, [run({ run: 'r2', name: 'b', status: 'completed' })], words)).toEqual([
      'Run b: completed.'
    ]);
  });

  it('leaves to the dialog what the dialog asks', () => {
    const heard = new Heard();
    news(heard, [], words);

    expect(news(heard, [run({ status: 'stopped', waits: waits('resume') })], words)).toEqual([]);
    expect(news(heard, [run({ status: 'stopped', waits: waits('read'), ended: 3 })], words)).toEqual([
      'Run review: stopped.'
    ]);
  });

  it('tells of a death and of a second end', () => {
    const heard = new Heard();
    news(heard, [run({})], words);

    expect(news(heard, [run({ status: 'interrupted', waits: waits('resume') })], words)).toEqual([
      'Run review: interrupted.'
    ]);
    expect(news(heard, [run({})], words)).toEqual([]);
    expect(news(heard, [run({ status: 'completed', ended: 9 })], words)).toEqual(['Run review: completed.']);
  });
});

describe('the states of runs', () => {
  it('tell what a stopped run waits for', () => {
    const word = (kind: IWaiting['kind']): string =>
      itemState(run({ status: 'stopped', waits: waits(kind) }), words).word;

    expect([word('settle'), word('decide'), word('resume'), word('read')]).toEqual([
      'needs a decision',
      'needs a decision',
      'to be resumed',
      'stopped'
    ]);
    expect(waitsText(run({ waits: waits('settle', ['pay', 'pay#2']) }), words)).toBe(
      'say what happened to pay, pay#2'
    );
  });
});

describe('what is asked before a cell spends', () => {
  const ahead: IAhead = {
    run: 'r1',
    name: 'review',
    replayed: 12,
    message: 'A message.',
    step: 'chat.completions',
    kind: 'model',
    model: 'gpt-4o-mini',
    tokens: 8200,
    usd: 0.0049,
    why: '',
    asks: false,
    again: 1,
    again_usd: 0
  };

  it('says what came back, what comes next and the most that it costs', () => {
    const said = aheadSentences(ahead, words);

    expect(said[0]).toMatch(/^12 steps came back/);
    expect(said[1]).toBe(
      'The next step has no result there: chat.completions (model call, gpt-4o-mini, at most $0.0049).'
    );
    expect(said[2]).toMatch(/^1 more recorded step is executed again/);
  });

  it('says tokens where no price is known, and the message where no step is', () => {
    expect(aheadSentences({ ...ahead, usd: null }, words)[1]).toContain('at most 8200 tokens');
    expect(aheadSentences({ ...ahead, step: '' }, words)[1]).toBe('A message.');
  });

  it('counts what is executed again from a step on, without clocks and random numbers', () => {
    const usage = {
      provider: 'p',
      model: 'm',
      input: 10,
      output: 5,
      cached: null,
      cache_write: null,
      reasoning: null,
      cost: 0.5
    };
    const rows = [
      row(1, { kind: 'model', usage }),
      row(2, { kind: 'now' }),
      row(3, { kind: 'model', saved: usage }),
      row(4)
    ];

    expect(againOf(rows, 0)).toEqual({ steps: 3, doubt: 0, cost: 1, tokens: 30, unpriced: 0 });
    expect(againOf(rows, 2)).toEqual({ steps: 2, doubt: 0, cost: 0.5, tokens: 15, unpriced: 0 });
  });

  it('counts what kept steps had cost elsewhere, and steps of which nobody knows the end', () => {
    const cost = { provider: 'openai', model: 'm', cached: null, cache_write: null, reasoning: null };
    const untold = { ...cost, input: null, output: null, cost: null };
    const saved = { ...cost, input: 10, output: 5, cost: 0.5 };
    const rows = [
      row(1, { kind: 'model', status: 'adopted', usage: untold, saved }),
      row(2, { status: 'in_doubt' })
    ];

    expect(againOf(rows, 0)).toEqual({ steps: 2, doubt: 1, cost: 0.5, tokens: 15, unpriced: 0 });
  });
});

describe('the first line', () => {
  it('tells its flags, but not those in a comment or a name', () => {
    const header = findHeader('%%durable "a --fresh b" --from=3 # --off');

    expect(header).not.toBeNull();
    expect(header && ['--fresh', '--from', '--off'].map(flag => hasFlag(header, flag))).toEqual([
      false,
      true,
      false
    ]);
  });

  it('takes a flag before a comment', () => {
    expect(withFlag('%%durable review # mine\nx = 1', '--replay-only')).toBe(
      '%%durable review --replay-only\nx = 1'
    );
  });
});

describe('a step as code', () => {
  it('quotes what a stranger has written', () => {
    const detail = {
      run: '"]); evil() #',
      branch: 'b\\',
      digest: "d'",
      row: row(3, { name: 'ask', label: 'ask#2' })
    } as unknown as IStepDetail;
    const code = codeOf(detail);

    expect(code).toContain('["\\"]); evil() #", "b\\\\", "", "ask", "d\'", 2]');
  });
});
