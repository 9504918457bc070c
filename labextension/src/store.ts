/**
 * What the panel knows of the log of one notebook, kept up to date: the runs, and the history of the chosen branch.
 *
 * The truth is asked for when something is chosen, on a hint that something changed, when the page or the kernel comes
 * back, and from time to time while a run is running, since hints may be lost.
 */
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';
import { Api } from './api';
import { BEGINNING, type ILook, type IPlace, Places, WHOLE } from './look';
import { emptyHistory, type IHistory, merge, position } from './model';
import type { IAbout, IBranchItem, IHint, IKeptItem, IRunDetail, IRunItem, IRuns, IWaitItem } from './shapes';
import { type ITransport, RequestError } from './transport';
import { canGoOn, now } from './waits';
import { WaitsAsked } from './waitsAsked';

const PAGE = 5000;
/** Hints come in bursts while steps are short: what comes within this time (ms) is answered by one question. */
const TOGETHER = 120;
/** What is filled in: at the chosen step, or below the head of the run. */
export type Form = 'fork' | 'signal' | 'cancel' | 'cancel-child';

export type Phase = 'idle' | 'loading' | 'ready' | 'missing' | 'error';

export class Store implements IDisposable {
  constructor(private readonly transport: ITransport) {
    this.hints = transport.listen(
      () => this.about?.hints ?? '',
      hint => this.onHint(hint)
    );
    document.addEventListener('visibilitychange', this.onVisible);
    window.addEventListener('online', this.onVisible);
  }

  /** Anything below has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  phase: Phase = 'idle';
  problem = '';
  /** Whether somebody answered, and did not say what was asked. */
  refused = false;
  api: Api | null = null;
  about: IAbout | null = null;
  runs: IRuns | null = null;
  /** What the runs of the log wait for; `null`: nobody has asked yet. */
  waits: IWaitItem[] | null = null;
  /** Signals that were sent to runs and are not used yet. */
  kept: IKeptItem[] = [];
  /** Id of the chosen run, and what is known of it. */
  run = '';
  detail: IRunDetail | null = null;
  /** Id of the chosen branch; empty: the one that ran last. */
  branch = '';
  history: IHistory = emptyHistory();
  /** Whether the history is there up to its end. */
  whole = false;
  /** Number of the chosen step. */
  step: number | null = null;
  /** The form that is open. */
  form: Form | null = null;
  /** Id of a branch that was made here just now: the panel leads on from it. */
  made = '';
  /** What is shown of the tree. */
  look: ILook = WHOLE;
  /** Milliseconds between two questions while a run is running. */
  interval = 2000;

  get isDisposed(): boolean {
    return this._disposed;
  }

  get item(): IRunItem | null {
    return this.runs?.runs.find(each => each.run === this.run) ?? null;
  }

  /** Whether cells of this notebook are run again once they can go on; `null`: as the settings say. */
  goOn: boolean | null = null;

  setGoOn(goOn: boolean): void {
    this.goOn = goOn;
    this.emit();
  }

  /** Whether running the cell of a run again brings it further. */
  canGoOn(run: IRunItem): boolean {
    return canGoOn(run, this.waits ?? [], now());
  }

  /** Whether the runs of other notebooks are listed too. */
  others = false;
  /** Id of the run to show until a person chooses; empty: the one that ran last. */
  wish = '';

  /** The runs to choose from: those of this notebook, unless somebody asked for all of the log. */
  get listed(): IRunItem[] {
    return (this.runs?.runs ?? []).filter(each => each.here || this.others);
  }

  showOthers(): void {
    this.others = true;
    void this.refresh();
  }

  /** Id of the branch that is shown. */
  get shown(): string {
    return this.branch || (this.item?.branch ?? '');
  }

  /** The branch that is shown, once it is known. */
  get branchItem(): IBranchItem | null {
    return this.detail?.branches.find(each => each.branch === this.shown) ?? null;
  }

  /** Open a form; `null`: close the one that is open. */
  openForm(form: Form | null): void {
    this.form = form;
    this.emit();
  }

  /** Open a form, or close it. */
  toggleForm(form: Form): void {
    this.openForm(this.form === form ? null : form);
  }

  /** A branch was made of a run: show it. */
  forked(run: string, branch: string): void {
    this.made = branch;
    this.choose(run);
  }

  /** A signal was sent to a run that may wait for nothing. */
  sent(run: string): void {
    this.asked.again(run);
    void this.refresh();
  }

  setNotebook(path: string | null): void {
    if (path === (this.api?.notebook ?? null)) {
      return;
    }
    if (this.api) {
      this.places.keep(this.api.notebook, this.place);
    }
    const place = path === null ? BEGINNING : this.places.of(path);
    this.api = path === null ? null : new Api(this.transport, path);
    this.about = this.runs = this.waits = null;
    this.kept = [];
    this.asked.clear();
    this.phase = path === null ? 'idle' : 'loading';
    this.picked = place.picked;
    this.others = place.others;
    this.goOn = place.goOn;
    this.show(place.run, place.branch);
    this.step = place.step;
    this.look = place.look;
    this.emit();
    void this.refresh();
  }

  /** A notebook was renamed or moved: what was chosen in it stays chosen. */
  moved(before: string, after: string): void {
    const shown = this.api?.notebook === before;
    if (shown) {
      this.setNotebook(null);
    }
    this.places.move(before, after);
    if (shown) {
      this.setNotebook(after);
    }
  }

  private get place(): IPlace {
    const { picked, others, run, branch, step, look, goOn } = this;
    return { picked, others, run, branch, step, look, goOn };
  }

  /** Look at the tree in another way. */
  setLook(change: Partial<ILook>): void {
    this.look = { ...this.look, ...change };
    this.emit();
  }

  /** Choose a run and, perhaps, a branch of it by its id. */
  choose(run: string, branch = ''): void {
    this.picked = true;
    this.show(run, branch);
    void this.refresh();
  }

  private show(run: string, branch: string): void {
    this.run = run;
    this.branch = branch;
    this.detail = null;
    this.step = null;
    this.form = null;
    this.look = { ...this.look, collapsed: WHOLE.collapsed };
    this.history = emptyHistory();
    this.whole = false;
    this.emit();
  }

  chooseStep(step: number | null): void {
    if (step !== this.step) {
      this.step = step;
      this.form = this.form === 'fork' || this.form === 'cancel-child' ? null : this.form;
      this.emit();
    }
  }

  /** Ask for everything that is shown; questions asked meanwhile are answered by one more round. */
  async refresh(): Promise<void> {
    if (this.asking) {
      this.again = true;
      return this.asking;
    }
    this.asking = this.rounds();
    return this.asking;
  }

  dispose(): void {
    if (this._disposed) {
      return;
    }
    this._disposed = true;
    this.hints.dispose();
    clearTimeout(this.timer);
    clearTimeout(this.hinted);
    document.removeEventListener('visibilitychange', this.onVisible);
    window.removeEventListener('online', this.onVisible);
    Signal.clearData(this);
  }

  private async rounds(): Promise<void> {
    do {
      this.again = false;
      await this.round();
    } while (this.again && !this._disposed);
    // In the same turn as the look at `again`, or a question that comes in between is never answered.
    this.asking = null;
    clearTimeout(this.timer);
    if (!this._disposed && this.api && this.phase === 'ready') {
      const live = this.listed.some(each => each.status === 'running');
      this.timer = setTimeout(this.onVisible, live ? this.interval : this.interval * 10);
    }
  }

  private async round(): Promise<void> {
    const api = this.api;
    if (!api) {
      this.emit();
      return;
    }
    try {
      const about = this.about ?? (await api.about());
      const runs = await api.runs();
      if (api !== this.api) {
        this.again = true;
        return;
      }
      this.about = { ...about, exists: runs.exists };
      this.runs = runs;
      this.phase = 'ready';
      this.problem = '';
      const wished = runs.runs.find(each => each.run === this.wish);
      this.others ||= wished?.here === false;
      const chosen = this.listed.find(each => each.run === this.run);
      // The run that ran last comes first. The panel goes along with what is executed until a person chooses.
      const run = chosen && this.picked ? chosen.run : ((wished ?? this.listed[0])?.run ?? '');
      if (run !== this.run) {
        this.show(run, '');
      }
      if (this.run) {
        await this.ask(api, this.run);
      }
      await this.askWaits(api, runs.runs);
    } catch (reason) {
      if (api === this.api) {
        this.fail(reason);
      }
    }
    this.emit();
  }

  private async ask(api: Api, run: string): Promise<void> {
    const detail = await api.run(run);
    const branch = this.shown;
    const same = (): boolean => api === this.api && run === this.run && branch === this.shown;
    for (let more = true; more;) {
      if (!same()) {
        this.again = true;
        return;
      }
      this.detail = detail;
      if (this.history.page && this.history.page.branch !== branch) {
        this.history = emptyHistory();
        this.step = null;
      }
      const { after, epoch } = position(this.history);
      const page = await api.steps(run, branch, after, epoch, PAGE);
      if (!same()) {
        this.again = true;
        return;
      }
      this.history = merge(this.history, page);
      more = page.more;
      this.whole = !more;
      // The first rows are shown while the rest is still on its way.
      this.emit();
    }
  }

  private async askWaits(api: Api, runs: readonly IRunItem[]): Promise<void> {
    const answer = await this.asked.ask(api, runs);
    if (api !== this.api) {
      this.again = true;
      return;
    }
    this.waits = answer.waits;
    this.kept = answer.kept;
    this.asked.note(answer);
  }

  private fail(reason: unknown): void {
    const missing = reason instanceof RequestError && reason.missing;
    this.phase = missing ? 'missing' : 'error';
    this.refused = reason instanceof RequestError && reason.status > 0;
    this.problem = reason instanceof Error ? reason.message : String(reason);
    if (!missing) {
      // The server may be back in a moment; what was shown stays in sight until then.
      clearTimeout(this.timer);
      this.timer = setTimeout(this.onVisible, this.interval * 5);
    }
  }

  private onHint(hint: IHint): void {
    if (hint.log === this.about?.log && this.hinted === undefined) {
      this.hinted = setTimeout(() => {
        this.hinted = undefined;
        this.onVisible();
      }, TOGETHER);
    }
  }

  private readonly onVisible = (): void => {
    if (!document.hidden && this.api && !this._disposed) {
      void this.refresh();
    }
  };

  private emit(): void {
    if (!this._disposed) {
      this._changed.emit();
    }
  }

  private readonly hints: IDisposable;
  private readonly _changed = new Signal<this, void>(this);
  private readonly asked = new WaitsAsked();
  private picked = false;
  private readonly places = new Places();
  private asking: Promise<void> | null = null;
  private again = false;
  private hinted: ReturnType<typeof setTimeout> | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private _disposed = false;
}
