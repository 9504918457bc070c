/**
 * Asks what runs wait for, of as few runs as possible: one that waited for nothing is not asked about again before
 * something happens in it.
 */
import type { Api } from './api';
import type { IRunItem, IWaits } from './shapes';
import { mayWait } from './waits';

/** As many waits come with one answer. */
const MOST_WAITS = 200;

type Answer = Pick<IWaits, 'waits' | 'kept'>;

export class WaitsAsked {
  async ask(api: Pick<Api, 'waiting'>, runs: readonly IRunItem[]): Promise<Answer> {
    this.open = runs.filter(
      run =>
        this.wanted.has(run.run) ||
        this.keeping.has(run.run) ||
        (mayWait(run) && this.quiet.get(run.run) !== run.head)
    );
    this.wanted.clear();
    return this.open.length > 0 ? await api.waiting() : { waits: [], kept: [] };
  }

  /** Remember for the next time what was answered. */
  note({ waits, kept }: Answer): void {
    if (waits.length >= MOST_WAITS) {
      return;
    }
    this.keeping.clear();
    kept.forEach(each => this.keeping.add(each.run));
    const waiting = new Set(waits.map(wait => wait.run));
    this.open.filter(run => !waiting.has(run.run)).forEach(run => this.quiet.set(run.run, run.head));
  }

  /** Something was sent to a run: ask about it, however it stands. */
  again(run: string): void {
    this.wanted.add(run);
  }

  clear(): void {
    this.quiet.clear();
    this.keeping.clear();
    this.wanted.clear();
  }

  /** The runs that were asked about last. */
  private open: readonly IRunItem[] = [];

  /** Runs that waited for nothing, and how far they had come then. */
  private readonly quiet = new Map<string, number>();
  /** Runs for which signals are kept. */
  private readonly keeping = new Set<string>();
  /** Runs that are asked about the next time, whatever is known of them. */
  private readonly wanted = new Set<string>();
}
