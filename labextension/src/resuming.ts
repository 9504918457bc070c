/** When cells are resumed: because a person says so, because a run can go on by itself, after a kernel has died. */
import { Notification } from '@jupyterlab/apputils';
import { NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import { again, sumOf } from './again';
import { Api } from './api';
import { cellName } from './cells';
import { askToSpend, confirmAgain } from './dialogs';
import { type IHost, pathOf } from './host';
import type { Notices } from './notices';
import { type IProspect, prospect, Ran, resume, runWith } from './resume';
import { isAgreed, isDone, now } from './waits';

export class Resuming {
  constructor(
    private readonly host: IHost,
    private readonly notices: Notices
  ) {
    host.store.changed.connect(() => this.goOn());
    NotebookActions.executed.connect((_, { notebook, cell, success }) => {
      const owner = host.tracker.find(each => each.content === notebook);
      if (owner && success) {
        this.ran.add(owner, cell.model.id);
      }
      void host.store.refresh();
    });
    NotebookActions.executionScheduled.connect(() => void host.store.refresh());
  }

  /** Whether cells of the notebook in front are run again by themselves once they can go on. */
  get goesOn(): boolean {
    return this.host.store.goOn ?? this.host.wishes.resumeWhenAnswered;
  }

  /** The kernel of a notebook is another one. */
  forget(notebook: NotebookPanel): void {
    this.ran.forget(notebook);
  }

  /**
   * Resume what can be resumed in the notebook in front.
   *
   * @param run - id of the one run that is meant; empty: all
   * @param anyway - run its cell also if its last execution came to its end: another branch of it is chosen
   */
  async ask(run: string, anyway = false): Promise<void> {
    const { store, tracker, words } = this.host;
    const notebook = tracker.currentWidget;
    await store.refresh();
    if (!notebook || !store.api) {
      return;
    }
    if (run && store.runs?.runs.some(each => each.run === run && each.status === 'cancelled')) {
      if (!(await this.lift(notebook, store.api, run))) {
        return;
      }
    }
    const runs = store.runs?.runs ?? [];
    const found = await prospect(notebook, store.api, runs, run, store.waits ?? [], anyway);
    if (found.cells.length === 0) {
      const item = runs.find(each => each.run === run);
      Notification.info(
        item
          ? words.__('No cell of this notebook has the run %1 any more. Its log has the source.', item.name)
          : words.__('No durable cell of this notebook waits to be resumed.'),
        { autoClose: 5000 }
      );
    } else {
      await this.go(notebook, found);
    }
  }

  /** Let a cancelled run go on, if it has a cell here and can go on at once; that executes nothing yet. */
  private async lift(notebook: NotebookPanel, api: Api, run: string): Promise<boolean> {
    const { store, words } = this.host;
    const found = await prospect(notebook, api, store.runs?.runs ?? [], run, [], true);
    if (found.cells.length === 0) {
      return true; // which is said by who asked
    }
    try {
      await api.resume({ run });
      store.sent(run);
      await store.refresh();
      const item = store.runs?.runs.find(each => each.run === run);
      if (item?.status === 'parked' && !store.canGoOn(item)) {
        Notification.info(words.__('%1 may go on, and waits as it did before.', item.name), {
          autoClose: 5000
        });
        return false;
      }
      return true;
    } catch (reason) {
      Notification.warning(reason instanceof Error ? reason.message : String(reason), { autoClose: 10_000 });
      return false;
    }
  }

  /** Run one cell with a flag, such as `--fresh`. */
  async runWith(notebook: NotebookPanel, cell: Parameters<typeof runWith>[1], flag: string): Promise<void> {
    await runWith(notebook, cell, flag);
    await this.host.store.refresh();
  }

  /** Say what can be resumed of a notebook whose kernel died. */
  async offer(notebook: NotebookPanel): Promise<void> {
    const { app, store, transport, wishes } = this.host;
    await store.refresh();
    if (!wishes.notifyAfterKernelDeath || notebook.isDisposed) {
      return;
    }
    // Not the store's: another notebook may be in front by now.
    const api = new Api(transport, pathOf(app, notebook));
    const runs = await api.runs().catch(() => null);
    const found = runs && (await prospect(notebook, api, runs.runs).catch(() => null));
    if (found && found.cells.length > 0) {
      this.notices.died(
        notebook,
        found,
        () => void this.go(notebook, found),
        () => void this.startFresh(notebook, found)
      );
    }
  }

  private async go(
    notebook: NotebookPanel,
    found: IProspect,
    flag = '',
    agreed: ReadonlySet<string> = this.agreedOf(found)
  ): Promise<void> {
    const { store, words, wishes } = this.host;
    if (this.going.has(notebook)) {
      Notification.info(words.__('The durable cells of this notebook are being resumed already.'), {
        autoClose: 3000
      });
      return;
    }
    this.going.add(notebook);
    this.notices.dismiss(notebook);
    try {
      const name = (cell: string): string => cellName(notebook, cell, words);
      const end = await resume(notebook, found, {
        words,
        ran: this.ran,
        flag,
        agreed,
        ask: wishes.askBeforeResume
          ? (cell, ahead, more) => askToSpend(ahead?.name ?? name(cell.model.id), ahead, more, words)
          : null
      });
      await store.refresh();
      if (end.how === 'stopped') {
        this.notices.stopped(notebook, end);
      }
    } finally {
      this.going.delete(notebook);
      this.goOn();
    }
  }

  /** The cells of a prospect that this person has let go on, by an answer in the panel. */
  private agreedOf(found: IProspect): Set<string> {
    const { store } = this.host;
    const person = store.about?.user ?? '';
    const agreed = found.cells.filter(({ run }) => run && isAgreed(run.run, store.waits ?? [], person));
    return new Set(agreed.map(each => each.cell.model.id));
  }

  /** Run the cell of a parked run again that was answered, or whose timer is over, where a person wants that. */
  private goOn(): void {
    clearTimeout(this.alarm);
    const { app, store, tracker } = this.host;
    const notebook = tracker.currentWidget;
    const { api, runs, waits } = store;
    if (!notebook || !api || !runs || !waits || !this.goesOn || api.notebook !== pathOf(app, notebook)) {
      return;
    }
    const parked = runs.runs.filter(run => run.here && run.status === 'parked');
    const moments = waits
      .filter(wait => !isDone(wait, now()) && parked.some(run => run.run === wait.run))
      .flatMap(wait => wait.until ?? []);
    if (moments.length > 0) {
      const rest = (Math.min(...moments) - now()) * 1000 + 50;
      this.alarm = setTimeout(() => void store.refresh(), Math.min(Math.max(rest, 50), 86_400_000));
    }
    const next = parked.find(run => store.canGoOn(run) && !this.tried.has(`${run.run}/${run.head}`));
    if (!next || this.going.has(notebook)) {
      return;
    }
    this.tried.add(`${next.run}/${next.head}`);
    void prospect(notebook, api, runs.runs, next.run, waits)
      .then(found =>
        found.cells.length === 0
          ? undefined
          : this.go(notebook, found, '', new Set(found.cells.map(each => each.cell.model.id)))
      )
      .catch(reason => console.warn('jupyter_durable: a parked run was not resumed.', reason));
  }

  /** Run everything of a prospect anew, if the person wants to pay for it again. */
  private async startFresh(notebook: NotebookPanel, found: IProspect): Promise<void> {
    const { app, transport, words, wishes } = this.host;
    const names = found.cells.map(each => each.run?.name ?? '').join(', ');
    const title = words.__('Start fresh?');
    const api = new Api(transport, pathOf(app, notebook));
    const whole = await Promise.all(
      found.cells.map(({ run }) => (run ? again(api, run.run, run.branch, 0) : sumOf([])))
    );
    if (!wishes.askBeforeRerun || (await confirmAgain(sumOf(whole), names, title, words))) {
      await this.go(notebook, found, '--fresh');
    }
  }

  private readonly ran = new Ran();
  private readonly going = new WeakSet<NotebookPanel>();
  /** Executions after which a run was let go on by itself: each once, or one that cannot go on would be run for ever. */
  private readonly tried = new Set<string>();
  private alarm: ReturnType<typeof setTimeout> | undefined;
}
