/**
 * What the runs of one notebook wait for, for the outputs of its cells. The panel's store knows it of the notebook in
 * front, and is listened to; of one that lies beside or behind it, the log is asked here.
 */
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';
import { Api } from './api';
import type { IHint, IRunItem, IWaitItem } from './shapes';
import type { Store } from './store';
import type { ITransport } from './transport';
import { canGoOn, now } from './waits';

/** Hints come in bursts: what comes within this time (ms) is answered by one question. */
const TOGETHER = 120;
/** Rounds of the store's interval between two questions that nobody has hinted at. */
const SELDOM = 10;

type Front = Pick<Store, 'api' | 'runs' | 'waits' | 'interval' | 'changed' | 'refresh'>;

export class NotebookWaits {
  /**
   * @param store - of the notebook in front
   * @param transport - carries the questions
   * @param path - tells the path of the notebook, as the server has it: it may be moved
   */
  constructor(
    private readonly store: Front,
    private readonly transport: ITransport,
    private readonly path: () => string
  ) {}

  /** Of the log of the notebook; `null`: not known yet. */
  runs: readonly IRunItem[] | null = null;
  waits: readonly IWaitItem[] | null = null;

  /** Anything above has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get api(): Api {
    const path = this.path();
    if (this._api?.notebook !== path) {
      this._api = new Api(this.transport, path);
    }
    return this._api;
  }

  /** Whether running the cell of a run again brings it further. */
  canGoOn(run: IRunItem): boolean {
    return canGoOn(run, this.waits ?? [], now());
  }

  /** Ask again; ends when the answer is there, or does not come. */
  async refresh(): Promise<void> {
    if (this.inFront) {
      await this.store.refresh();
      this.take();
    } else {
      await this.ask();
    }
  }

  /** An output is in sight that wants to know. */
  enter(): void {
    if (this.watchers++ > 0) {
      return;
    }
    this.store.changed.connect(this.take, this);
    this.hints = this.transport.listen(
      () => this.schema,
      hint => this.onHint(hint)
    );
    this.take();
    if (this.waits === null) {
      void this.refresh();
    }
    this.later();
  }

  /** An output is not in sight any more. */
  leave(): void {
    if (--this.watchers > 0) {
      return;
    }
    this.store.changed.disconnect(this.take, this);
    this.hints?.dispose();
    this.hints = null;
    clearTimeout(this.hinted);
    clearTimeout(this.timer);
    this.hinted = undefined;
  }

  private get inFront(): boolean {
    return this.store.api?.notebook === this.path();
  }

  /** What the store knows of the notebook in front. */
  private take(): void {
    const { runs, waits } = this.store;
    if (this.inFront && runs && waits) {
      this.put(runs.runs, waits);
    }
  }

  private put(runs: readonly IRunItem[], waits: readonly IWaitItem[]): void {
    if (runs !== this.runs || waits !== this.waits) {
      this.runs = runs;
      this.waits = waits;
      this._changed.emit();
    }
  }

  private async ask(): Promise<void> {
    const { api } = this;
    try {
      const about = await api.about();
      const { runs } = await api.runs();
      const { waits } = await api.waiting();
      if (api === this.api) {
        this.schema = about.hints;
        this.log = about.log;
        this.put(runs, waits);
      }
    } catch (reason) {
      // What is shown stays, and is asked for again later: the server may be on its way back, or has no extension.
      console.debug('jupyter_durable: nobody said what waits.', reason);
    }
  }

  private onHint(hint: IHint): void {
    if (hint.log === this.log && this.hinted === undefined && !this.inFront) {
      this.hinted = setTimeout(() => {
        this.hinted = undefined;
        void this.ask();
      }, TOGETHER);
    }
  }

  /** Hints may be lost. */
  private later(): void {
    this.timer = setTimeout(() => {
      const asking = this.inFront || document.hidden ? Promise.resolve() : this.ask();
      void asking.then(() => (this.watchers > 0 ? this.later() : undefined));
    }, this.store.interval * SELDOM);
  }

  private readonly _changed = new Signal<this, void>(this);
  private _api: Api | null = null;
  private schema = '';
  private log = '';
  private watchers = 0;
  private hints: IDisposable | null = null;
  private hinted: ReturnType<typeof setTimeout> | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
}
