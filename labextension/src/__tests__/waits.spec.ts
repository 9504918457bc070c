import { asks, asksSentences, Heard, news } from '../announce';
import { itemState, left, stepState } from '../format';
import { plainWords as words } from '../plainWords';
import type { IRunItem } from '../shapes';
import { asksText, canGoOn, isAgreed, untilText, waitState } from '../waits';
import { waitItem } from './rows';

const parked = {
  run: 'r',
  name: 'mails',
  status: 'parked',
  ended: 1,
  head: 3,
  here: true,
  waits: { kind: 'answer', branch: 'r.1', branch_name: 'main', steps: [], message: '', since: 1 }
} as unknown as IRunItem;
const answer = { by: 'ana', via: 'panel', at: 2 };

describe('whether a parked run goes on', () => {
  it('does when it was answered, or the moment has come', () => {
    expect(canGoOn(parked, [], 10)).toBe(false);
    expect(canGoOn(parked, [waitItem()], 10)).toBe(false);
    expect(canGoOn(parked, [waitItem({ answered: answer })], 10)).toBe(true);
    expect(canGoOn(parked, [waitItem({ answered: answer, run: 'other' })], 10)).toBe(false);
    expect(canGoOn(parked, [waitItem({ kind: 'timer', until: 11 })], 10)).toBe(false);
    expect(canGoOn(parked, [waitItem({ kind: 'timer', until: 10 })], 10)).toBe(true);
    expect(canGoOn({ ...parked, status: 'interrupted' }, [], 10)).toBe(true);
    expect(canGoOn({ ...parked, status: 'continued' }, [], 10)).toBe(true);
    expect(canGoOn({ ...parked, status: 'running' }, [waitItem({ answered: answer })], 10)).toBe(false);
  });

  it('is agreed to by whoever answered in the panel, and by nobody else', () => {
    expect(isAgreed('r', [waitItem({ answered: answer })], 'ana')).toBe(true);
    expect(isAgreed('r', [waitItem({ answered: answer })], 'eve')).toBe(false);
    expect(isAgreed('r', [waitItem({ answered: { ...answer, via: 'magic' } })], 'ana')).toBe(false);
    expect(isAgreed('r', [waitItem()], 'ana')).toBe(false);
    expect(isAgreed('r', [waitItem({ answered: { ...answer, by: '' } })], '')).toBe(false);
    const two = [waitItem({ answered: answer }), waitItem({ answered: { ...answer, by: 'eve' } })];
    expect(isAgreed('r', two, 'ana')).toBe(false);
  });
});

describe('how a wait is said', () => {
  it('has a word and a sign for runs and steps, never a colour alone', () => {
    expect(stepState('waiting', 'live', words)).toMatchObject({ sign: '◔', word: 'waiting' });
    expect(itemState(parked, words)).toMatchObject({ sign: '◔', word: 'parked' });
    expect(itemState({ ...parked, status: 'continued' }, words)).toMatchObject({
      sign: '↻',
      word: 'continued'
    });
    expect(waitState(waitItem({ answered: answer }), 1, words).word).toBe('answered');
    expect(waitState(waitItem({ until: 1 }), 2, words).word).toBe('over');
  });

  it('says until when, from here', () => {
    expect([1, 59.2, 61, 3599, 3600, 86_400, 259_200].map(left)).toEqual([
      '1 s',
      '1 min',
      '1 min',
      '1 h 0 min',
      '1 h 0 min',
      '24 h 0 min',
      '3 d 0 h'
    ]);
    expect(untilText(waitItem(), 0, words)).toBe('');
    expect(untilText(waitItem({ until: 100 }), 70, words)).toContain('lapses in 30 s (');
    expect(untilText(waitItem({ until: 100 }), 100, words)).toContain('has lapsed');
    expect(untilText(waitItem({ kind: 'timer', until: 100 }), 70, words)).toContain('goes off in 30 s (');
    expect(untilText(waitItem({ kind: 'timer', until: 100 }), 200, words)).toContain('over since');
  });

  it('cuts a long question where it is said aloud', () => {
    expect(asksText(waitItem({ question: 'x'.repeat(9000) }), words).length).toBeLessThan(180);
    expect(asksText(waitItem({ kind: 'signal', signal: 'payment' }), words)).toBe(
      'Run mails waits for the signal payment.'
    );
  });
});

it('says once that a run asks; what was there at the first look, a timer, and an answered one are no news', () => {
  const heard = new Heard();
  expect(asks(heard, [waitItem({ request: 'old' })])).toEqual([]);
  const waits = [
    waitItem({ request: 'old' }),
    waitItem(),
    waitItem({ request: 'q2', kind: 'timer' }),
    waitItem({ request: 'q3', answered: answer })
  ];
  expect(asksSentences(asks(heard, waits), words)).toEqual(['Run mails asks: Send it?']);
  expect(asks(heard, waits)).toEqual([]);
});

it('says of a parked run what it asks, and no more', () => {
  const heard = new Heard();
  news(heard, [{ ...parked, status: 'running' }], words);
  expect(news(heard, [parked], words)).toEqual([]);
  news(heard, [{ ...parked, status: 'running' }], words);
  const timer = { ...parked, waits: { ...parked.waits!, kind: 'timer' as const } };
  expect(news(heard, [timer], words)).toEqual(['Run mails: parked.']);
});
