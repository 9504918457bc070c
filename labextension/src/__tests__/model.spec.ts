import {
  EVERYTHING,
  emptyHistory,
  flatten,
  type IHistory,
  matches,
  merge,
  peer,
  position,
  sourceOf,
  statusOf,
  sums
} from '../model';
import { page, row } from './rows';

function history(...rows: ReturnType<typeof row>[]): IHistory {
  return merge(emptyHistory(), page(rows));
}

describe('merging pages', () => {
  it('keeps the newest of each row and goes on where the last page ended', () => {
    let known = merge(
      emptyHistory(),
      page([row(1, { status: 'running' }), row(3)], { next: 3, epoch: 'e', more: true })
    );
    known = merge(known, page([row(1), row(5)], { next: 5, epoch: 'e' }));

    expect([...known.rows.keys()].sort()).toEqual([1, 3, 5]);
    expect(known.rows.get(1)?.status).toBe('completed');
    expect(position(known)).toEqual({ after: 5, epoch: 'e' });
  });

  it('begins anew when the server says so', () => {
    const known = merge(history(row(1)), page([row(7)], { reset: true }));

    expect([...known.rows.keys()]).toEqual([7]);
  });

  it('does not draw again for a page that says nothing new', () => {
    const known = history(row(1));

    expect(merge(known, page([])).version).toBe(known.version);
    expect(merge(known, page([], { running: 'x2' })).version).toBe(known.version + 1);
  });

  it('asks from the beginning before the first page', () => {
    expect(position(emptyHistory())).toEqual({ after: -1, epoch: '' });
  });
});

describe('what a row means', () => {
  it('is in doubt when the execution that ran it is gone', () => {
    const running = row(1, { status: 'running', execution: 'x1' });

    expect(statusOf(running, merge(emptyHistory(), page([running], { running: 'x1' })))).toBe('running');
    expect(statusOf(running, history(running))).toBe('in_doubt');
  });

  it('tells live, replayed, kept and recorded apart', () => {
    const completed = merge(emptyHistory(), page([], { newest: 'x2', newest_status: 'completed' }));
    const cut = merge(emptyHistory(), page([], { newest: 'x2', newest_status: 'interrupted' }));

    expect(sourceOf(row(1, { execution: 'x2' }), completed)).toBe('live');
    expect(sourceOf(row(1, { execution: 'x1' }), completed)).toBe('replayed');
    expect(sourceOf(row(1, { execution: 'x1' }), cut)).toBe('recorded');
    expect(sourceOf(row(1, { status: 'adopted', execution: 'x2' }), cut)).toBe('kept');
  });

  it('sums them up', () => {
    const known = merge(
      emptyHistory(),
      page(
        [row(1), row(2, { execution: 'x2' }), row(3, { status: 'adopted' }), row(4, { status: 'failed' })],
        {
          newest: 'x2'
        }
      )
    );

    expect(sums(known)).toEqual({ steps: 4, replayed: 3, live: 1, failed: 1 });
  });
});

describe('the filter', () => {
  const known = history(row(1));

  it('finds words in label, model and error, in any case and order', () => {
    const failed = row(2, { label: 'ask#2', error: { type: 'openai.RateLimitError', message: 'slow down' } });

    expect(matches(failed, known, { ...EVERYTHING, text: 'down ASK' })).toBe(true);
    expect(matches(failed, known, { ...EVERYTHING, text: 'ask search' })).toBe(false);
  });

  it('knows kinds and statuses', () => {
    expect(matches(row(2, { kind: 'model' }), known, { ...EVERYTHING, kinds: ['model'] })).toBe(true);
    expect(matches(row(2), known, { ...EVERYTHING, statuses: ['failed'] })).toBe(false);
  });
});

describe('the tree', () => {
  const nested = history(
    row(1),
    row(2, { parent: 1 }),
    row(3, { parent: 2, label: 'deep' }),
    row(4),
    row(5, { cell: 'd' })
  );

  it('groups by cell and nests by step', () => {
    const lines = flatten(nested, EVERYTHING, new Set());

    expect(lines.map(line => [line.key, line.level])).toEqual([
      ['cc', 1],
      ['s1', 2],
      ['s2', 3],
      ['s3', 4],
      ['s4', 2],
      ['cd', 1],
      ['s5', 2]
    ]);
    expect(lines[0]).toMatchObject({ below: 4, place: 1, siblings: 2, expanded: true });
    expect(lines[4]).toMatchObject({ place: 2, siblings: 2, expanded: null, parent: 'cc' });
  });

  it('hides what is below a closed line, and still counts it', () => {
    const lines = flatten(nested, EVERYTHING, new Set(['s1', 'cd']));

    expect(lines.map(line => line.key)).toEqual(['cc', 's1', 's4', 'cd']);
    expect(lines[1]).toMatchObject({ below: 2, expanded: false });
  });

  it('shows the way to a hit, whatever was closed', () => {
    const lines = flatten(nested, { ...EVERYTHING, text: 'deep' }, new Set(['s1']));

    expect(lines.map(line => [line.key, line.faint])).toEqual([
      ['cc', false],
      ['s1', true],
      ['s2', true],
      ['s3', false]
    ]);
  });

  it('takes a parent that is not there, or comes later, for none', () => {
    const lines = flatten(history(row(1, { parent: 99 }), row(2, { parent: 2 })), EVERYTHING, new Set());

    expect(lines.map(line => line.level)).toEqual([1, 2, 2]);
  });

  it('is quick with many steps', () => {
    const many = history(
      ...Array.from({ length: 100_000 }, (_, i) => row(i, { parent: i % 10 ? i - (i % 10) : null }))
    );
    const began = performance.now();

    expect(flatten(many, EVERYTHING, new Set())).toHaveLength(100_001);
    expect(performance.now() - began).toBeLessThan(2000);
  });

  it('goes to the next step of the same name', () => {
    const lines = flatten(
      history(row(1, { name: 'a' }), row(2, { name: 'b' }), row(3, { name: 'a' })),
      EVERYTHING,
      new Set()
    );

    expect(peer(lines, 1, 1)).toBe(3);
    expect(peer(lines, 3, -1)).toBe(1);
    expect(peer(lines, 2, 1)).toBe(2);
    expect(peer(lines, 0, 1)).toBe(0);
  });
});
