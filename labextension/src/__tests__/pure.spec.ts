import { bytes, count, duration, money, plain, stepState, usageText, type IWords } from '../format';
import { findHeader, withFlag } from '../header';
import { emptyHistory, merge } from '../model';
import { layOut, LONGEST_GAP } from '../timeline';
import { scrollTo, windowOf } from '../virtual';
import { page, row } from './rows';

const words: IWords = {
  __: (text, ...values) => text.replace(/%(\d)/g, (_, i) => String(values[Number(i) - 1])),
  _n: (one, many, n) => (n === 1 ? one : many)
};

describe('the window of a list', () => {
  it('draws what is in sight and some beyond', () => {
    expect(windowOf(2400, 480, 24, 10_000, 10)).toEqual({ first: 90, end: 130 });
    expect(windowOf(0, 480, 24, 5)).toEqual({ first: 0, end: 5 });
  });

  it('stays inside when the list has become shorter', () => {
    const { first, end } = windowOf(1e6, 480, 24, 30, 4);

    expect(first).toBeLessThanOrEqual(end);
    expect(end).toBe(30);
  });

  it('scrolls no further than it must', () => {
    expect(scrollTo(5, 0, 240, 24)).toBe(0);
    expect(scrollTo(20, 0, 240, 24)).toBe(264);
    expect(scrollTo(1, 240, 240, 24)).toBe(24);
  });
});

describe('numbers', () => {
  it('says durations, money, counts and sizes as people do', () => {
    expect([0.0402, 6.24, 75, 7300, null].map(duration)).toEqual([
      '40 ms',
      '6.2 s',
      '1 min 15 s',
      '2 h 1 min',
      ''
    ]);
    expect([0, 1.874, 0.0042, 0.00001].map(money)).toEqual(['$0.00', '$1.87', '$0.0042', '<$0.0001']);
    expect([999, 12_345, 2_500_000].map(count)).toEqual(['999', '12.3k', '2.5M']);
    expect([10, 2048, 3 * 1024 * 1024].map(bytes)).toEqual(['10 B', '2.0 KiB', '3.0 MiB']);
  });

  it('leaves out what is not known', () => {
    const usage = { provider: '', model: 'm', cached: null, cache_write: null, reasoning: null };

    expect(usageText(row(1, { usage: { ...usage, input: 10, output: null, cost: null } }), words)).toBe(
      '10 tok'
    );
    expect(usageText(row(1, { usage: { ...usage, input: null, output: null, cost: 0.02 } }), words)).toBe(
      '$0.02'
    );
    expect(usageText(row(1), words)).toBe('');
  });

  it('has a word beside each sign', () => {
    for (const status of [
      'running',
      'in_doubt',
      'completed',
      'failed',
      'cancelled',
      'not_stored',
      'adopted'
    ] as const) {
      expect(stepState(status, 'live', words)).toMatchObject({ sign: /./, word: /.../ });
    }
  });

  it('takes the colours of a terminal out', () => {
    expect(plain('\u001b[31mred\u001b[0m \u001b]0;title\u0007end')).toBe('red end');
  });
});

describe('the first line of a durable cell', () => {
  it('is found where the kernel finds it', () => {
    expect(findHeader('\n%%durable report --fresh\nx = 1')).toMatchObject({ line: 1, name: 'report' });
    expect(findHeader('#| label: fig\n#| durable: report\nx')).toMatchObject({ line: 1, name: 'report' });
    expect(findHeader('%%durable --budget 50k tokens "my report"')?.name).toBe('my report');
    expect(findHeader('%%durable')?.name).toBe('');
    expect(findHeader('# a comment\n%%durable report')).toBeNull();
    expect(findHeader('%%durable?')).toBeNull();
    expect(findHeader('x = 1')).toBeNull();
  });

  it('takes one more flag, and nothing else changes', () => {
    expect(withFlag('%%durable report\nx = 1', '--fresh')).toBe('%%durable report --fresh\nx = 1');
    expect(withFlag('#| durable: report\nx', '--from 7')).toBe('#| durable: report --from 7\nx');
    expect(withFlag('x = 1', '--fresh')).toBe('x = 1');
  });
});

describe('the timeline', () => {
  const known = (...rows: ReturnType<typeof row>[]) => merge(emptyHistory(), page(rows));

  it('puts parallel steps into lanes of their own, inner ones below', () => {
    const { bars, lanes } = layOut(
      known(
        row(1, { started: 0, ended: 10 }),
        row(2, { started: 1, ended: 2, parent: 1 }),
        row(3, { started: 1, ended: 3, parent: 1 }),
        row(4, { started: 10, ended: 11 })
      ),
      11
    );

    expect(bars.map(bar => bar.lane)).toEqual([0, 1, 2, 0]);
    expect(bars.map(bar => bar.depth)).toEqual([0, 1, 1, 0]);
    expect(lanes).toBe(3);
  });

  it('cuts a night short', () => {
    const { bars, seconds } = layOut(
      known(row(1, { started: 0, ended: 1 }), row(2, { started: 40_000, ended: 40_002 })),
      0
    );

    expect(bars[1]?.from).toBeCloseTo(1 + LONGEST_GAP);
    expect(seconds).toBeCloseTo(3 + LONGEST_GAP);
  });

  it('draws what still runs up to now, and what is in doubt as a point', () => {
    const running = row(1, { started: 5, ended: null, status: 'running' });
    const lost = row(2, { started: 6, ended: null, status: 'in_doubt' });

    expect(layOut(known(running, lost), 9).bars.map(bar => bar.to - bar.from)).toEqual([4, 0]);
  });
});
