/** What is said in notices, beside the panel: that a round of resuming stopped, that a kernel died, that a run asks. */
import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { asks, asksSentences, Heard, news, Region } from './announce';
import { reveal } from './cells';
import { goTo } from './components/waiting';
import type { IHost } from './host';
import { type IEnd, type IProspect, prospectText } from './resume';
import type { IWaitItem } from './shapes';
import { asksText } from './waits';

export class Notices {
  /**
   * @param answer - opens the panel where a request is answered
   */
  constructor(
    private readonly host: IHost,
    private readonly answer: (wait: IWaitItem) => void
  ) {
    host.store.changed.connect(() => this.listen());
  }

  /** Take away what stands in notices about a notebook. */
  dismiss(notebook: NotebookPanel): void {
    this.told.get(notebook)?.forEach(id => Notification.dismiss(id));
    this.told.delete(notebook);
  }

  /** A round of resuming did not come to its end. */
  stopped(notebook: NotebookPanel, end: IEnd): void {
    const { words, store, tracker, actions, open, isOpen } = this.host;
    const cell = end.cell?.model.id ?? '';
    const where = PathExt.basename(notebook.context.path);
    const id = Notification.warning(`${where}: ${end.message}`, {
      // Beside an open panel it would lie over the buttons that it asks for.
      autoClose: isOpen() ? 6000 : false,
      actions: [
        {
          label: words.__('Show'),
          callback: () => {
            const item = store.runs?.runs.find(run => run.here && run.cell === cell);
            if (item && tracker.currentWidget === notebook) {
              goTo(store, actions, item);
              open();
            } else {
              void reveal(notebook, cell, 0);
            }
          }
        }
      ]
    });
    this.remember(notebook, id);
  }

  /** A kernel died, and some of its cells can be resumed. */
  died(notebook: NotebookPanel, found: IProspect, resume: () => void, startFresh: () => void): void {
    const { words, store, tracker, open } = this.host;
    const first = found.cells[0]?.run?.run;
    const id = Notification.warning(
      words.__(
        'The kernel of %1 died. %2',
        PathExt.basename(notebook.context.path),
        prospectText(found, words)
      ),
      {
        autoClose: false,
        actions: [
          { label: words.__('Resume'), displayType: 'accent', callback: resume },
          {
            label: words.__('Review'),
            callback: () => {
              if (first && tracker.currentWidget === notebook) {
                store.choose(first);
              }
              open();
            }
          },
          { label: words.__('Start fresh'), displayType: 'warn', callback: startFresh }
        ]
      }
    );
    this.remember(notebook, id);
  }

  /** The panel is in sight: what asks is seen there. */
  seen(): void {
    this.asked.forEach(id => Notification.dismiss(id));
    this.asked.clear();
  }

  private remember(notebook: NotebookPanel, id: string): void {
    this.told.set(notebook, [...(this.told.get(notebook) ?? []), id]);
  }

  /** Say aloud what has changed, and that a run asks. */
  private listen(): void {
    const { store, words } = this.host;
    if (!store.runs || !store.waits || !store.api || store.phase !== 'ready') {
      return;
    }
    if (this.heardOf !== store.api.notebook) {
      this.heardOf = store.api.notebook;
      this.heard = new Heard();
    }
    const runs = store.runs.runs.filter(run => run.here);
    const here = new Set(runs.map(run => run.run));
    const open = store.waits.filter(wait => here.has(wait.run));
    const fresh = asks(this.heard, open);
    this.region.say([...news(this.heard, runs, words), ...asksSentences(fresh, words)]);
    fresh.forEach(wait => this.ask(wait));
    for (const [request, id] of this.asked) {
      if (!open.some(wait => wait.request === request && wait.answered === null)) {
        Notification.dismiss(id);
        this.asked.delete(request);
      }
    }
  }

  /** Say that a run asks, where nobody sees the panel. */
  private ask(wait: IWaitItem): void {
    const { words, wishes, isOpen } = this.host;
    if (!wishes.notifyQuestions || (isOpen() && !document.hidden)) {
      return;
    }
    const id = Notification.info(asksText(wait, words), {
      autoClose: false,
      actions: [{ label: words.__('Answer'), displayType: 'accent', callback: () => this.answer(wait) }]
    });
    this.asked.set(wait.request, id);
  }

  /** What stands in notices about a notebook, until it is resumed. */
  private readonly told = new WeakMap<NotebookPanel, string[]>();
  /** Notices about requests that wait. */
  private readonly asked = new Map<string, string>();
  private readonly region = new Region();
  private heard = new Heard();
  private heardOf = '';
}
