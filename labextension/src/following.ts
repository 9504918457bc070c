/** The store follows the notebook in front, and the cells of that notebook have their marks. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import { mark } from './cells';
import { watch } from './deaths';
import { type IHost, pathOf } from './host';
import type { Resuming } from './resuming';

export class Following {
  constructor(
    private readonly host: IHost,
    private readonly resuming: Resuming
  ) {
    host.store.changed.connect(() => this.mark());
    host.tracker.currentChanged.connect(() => this.follow());
    host.tracker.widgetAdded.connect((_, notebook) => this.take(notebook));
    this.follow();
  }

  /** Draw the marks of the notebook in front. */
  mark(): void {
    const { app, store, tracker, words, wishes, open } = this.host;
    const notebook = tracker.currentWidget;
    if (notebook && store.api?.notebook === pathOf(app, notebook)) {
      mark(notebook, store.runs?.runs ?? [], wishes.stateDots, words, run => {
        if (run) {
          store.choose(run);
        }
        open();
      });
    }
  }

  private follow(): void {
    const { app, store, tracker } = this.host;
    const notebook = tracker.currentWidget;
    // A side bar or a view that takes the focus does not close the notebook.
    store.setNotebook(notebook ? pathOf(app, notebook) : null);
    this.mark();
  }

  private take(notebook: NotebookPanel): void {
    const { app, store } = this.host;
    let path = pathOf(app, notebook);
    notebook.context.pathChanged.connect(() => {
      const before = path;
      path = pathOf(app, notebook);
      store.moved(before, path);
      this.follow();
    });
    void notebook.context.ready.then(() => {
      this.follow();
      notebook.content.model?.contentChanged.connect(() => this.mark());
    });
    watch(
      notebook,
      () => {
        this.resuming.forget(notebook);
        void store.refresh();
      },
      () => void this.resuming.offer(notebook)
    );
  }
}
