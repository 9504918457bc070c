import { isNews, readAsked, standing } from '../asked';
import type { IRunItem } from '../shapes';
import { waitItem } from './rows';

const run = { run: 'r', name: 'mails', status: 'parked', here: true } as unknown as IRunItem;
const answered = { by: 'ana', via: 'panel', at: 2 };

describe('the entry of an output', () => {
  it('names a run and requests, each once', () => {
    const entry = { format: 1, run: 'r', name: 'mails', requests: ['q', 'q', 'p'] };
    expect(readAsked(entry)).toEqual({ run: 'r', requests: ['q', 'p'] });
  });

  it('is left alone if it is something else, or of a version that is not known', () => {
    for (const entry of [undefined, null, 'r', [], { format: 2, run: 'r', requests: [] }]) {
      expect(readAsked(entry)).toBeNull();
    }
    expect(readAsked({ format: 1, run: 1, requests: ['q'] })).toBeNull();
    expect(readAsked({ format: 1, run: 'r', requests: 'q' })).toBeNull();
    expect(readAsked({ format: 1, run: 'r', requests: [1, {}, '', 'q'] })).toEqual({
      run: 'r',
      requests: ['q']
    });
  });

  it('is kept short', () => {
    const requests = Array.from({ length: 5000 }, (_, i) => `q${i}`);
    expect(readAsked({ format: 1, run: 'r', requests })?.requests.length).toBe(100);
  });
});

describe('how the requests of an output stand', () => {
  const asked = { run: 'r', requests: ['q'] };

  it('is open until it is answered or lapses, and gone once the log does not list it', () => {
    const wait = waitItem({ run: 'r', request: 'q' });
    expect(standing(asked, [run], [wait], 10)).toEqual({ run, open: [wait], over: [], gone: 0 });
    const lapsed = { ...wait, until: 9 };
    expect(standing(asked, [run], [lapsed], 8).open).toEqual([lapsed]);
    expect(standing(asked, [run], [lapsed], 10).over).toEqual([lapsed]);
    const done = { ...wait, answered };
    expect(standing(asked, [run], [done], 10)).toMatchObject({ open: [], over: [done], gone: 0 });
    expect(standing(asked, [run], [], 10)).toMatchObject({ open: [], over: [], gone: 1 });
  });

  it('is nothing of what the output does not name: another request, another run, a timer', () => {
    const others = [
      waitItem({ run: 'r', request: 'p' }),
      waitItem({ run: 's', request: 'q' }),
      waitItem({ run: 'r', request: 'q', kind: 'timer', until: 99 })
    ];
    expect(standing(asked, [run], others, 10)).toMatchObject({ open: [], over: [], gone: 1 });
  });

  it('is gone for a run of another notebook, whatever a stranger wrote into the output', () => {
    const elsewhere = { ...run, here: false };
    const wait = waitItem({ run: 'r', request: 'q' });
    expect(standing(asked, [elsewhere], [wait], 10)).toEqual({ run: null, open: [], over: [], gone: 1 });
    expect(standing(asked, [], [wait], 10)).toMatchObject({ run: null, open: [] });
  });

  it('is news while the log was not asked, or did not know it then', () => {
    const wait = waitItem({ run: 'r', request: 'q' });
    expect(isNews(asked, null)).toBe(true);
    expect(isNews(asked, [])).toBe(true);
    expect(isNews(asked, [wait])).toBe(false);
    expect(isNews({ run: 'r', requests: ['q', 'p'] }, [wait])).toBe(true);
  });
});
