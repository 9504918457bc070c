/** Buttons in the output of a cell that waits: a renderer of the entry in its summary, one factory for each notebook. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { Panel, type Widget } from '@lumino/widgets';
import * as React from 'react';
import { type IAsked, isNews, readAsked, WAITS_MIME } from './asked';
import { CellWaits } from './components/cellWaits';
import { WordsProvider } from './components/words';
import type { IHost } from './host';
import { NotebookWaits } from './notebookWaits';

/** Before HTML, whose rank is 50. */
const RANK = 40;

export class CellButtons {
  constructor(private readonly host: IHost) {
    host.tracker.widgetAdded.connect((_, notebook) => this.take(notebook));
    host.tracker.forEach(notebook => this.take(notebook));
  }

  /** Two views of a notebook have one registry. */
  private take({ content: { rendermime }, context }: NotebookPanel): void {
    const { app, store, transport, tracker } = this.host;
    if (rendermime.getFactory(WAITS_MIME)) {
      return;
    }
    const waits = new NotebookWaits(store, transport, () =>
      app.serviceManager.contents.localPath(context.path)
    );
    const panelOf = (node: HTMLElement): NotebookPanel | null =>
      tracker.find(each => each.node.contains(node)) ??
      tracker.find(each => each.context === context) ??
      null;
    rendermime.addFactory(
      {
        safe: true,
        mimeTypes: [WAITS_MIME],
        createRenderer: () => new Rendered(rendermime, new Buttons(this.host, waits, panelOf))
      },
      RANK
    );
  }
}

/** The summary as it is drawn everywhere, and the buttons below it. */
class Rendered extends Panel implements IRenderMime.IRenderer {
  constructor(
    private readonly registry: IRenderMimeRegistry,
    private readonly buttons: Buttons
  ) {
    super();
    this.node.dataset['mimeType'] = WAITS_MIME;
    this.addWidget(buttons);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const { [WAITS_MIME]: entry, ...rest } = model.data;
    this.buttons.take(readAsked(entry));
    // Whoever would draw it if the entry were not there draws it: trust and sanitizing are theirs.
    const type = this.registry.preferredMimeType(rest, model.trusted ? 'any' : 'ensure');
    if (type !== this.type) {
      this.type = type;
      this.summary?.dispose();
      this.summary = type ? this.registry.createRenderer(type) : null;
      if (this.summary) {
        this.insertWidget(0, this.summary);
      }
    }
    await this.summary?.renderModel(model);
  }

  private type: string | undefined;
  private summary: (Widget & IRenderMime.IRenderer) | null = null;
}

class Buttons extends ReactWidget {
  constructor(
    private readonly host: IHost,
    private readonly waits: NotebookWaits,
    private readonly panelOf: (node: HTMLElement) => NotebookPanel | null
  ) {
    super();
  }

  take(asked: IAsked | null): void {
    if (JSON.stringify(asked) === JSON.stringify(this.asked)) {
      return;
    }
    this.asked = asked;
    this.sure = false;
    this.update();
    if (this.isAttached) {
      this.look();
    }
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.waits.enter();
    this.look();
  }

  protected override onBeforeDetach(message: Message): void {
    if (this.node.contains(document.activeElement)) {
      // The cell goes on, and its summary has no buttons any more: back to the notebook.
      this.panelOf(this.node)?.content.activate();
    }
    this.waits.leave();
    super.onBeforeDetach(message);
  }

  protected override render(): JSX.Element | null {
    const { asked, waits, host } = this;
    if (!asked) {
      return null;
    }
    return (
      <WordsProvider value={host.words}>
        <UseSignal signal={waits.changed}>
          {() => (
            <CellWaits
              notebook={waits}
              asked={asked}
              sure={this.sure}
              runCell={this.panelOf(this.node) ? run => void this.run(run) : null}
            />
          )}
        </UseSignal>
      </WordsProvider>
    );
  }

  /** An output may come before anybody has asked the log about it, and may be old. */
  private look(): void {
    const { asked } = this;
    if (!asked || !isNews(asked, this.waits.waits)) {
      this.sure = true;
      return;
    }
    void this.waits.refresh().then(() => {
      if (asked === this.asked && this.waits.waits !== null) {
        this.sure = true;
        this.update();
      }
    });
  }

  /** Run the cell again, as the panel does: that is done in the notebook in front. */
  private async run(run: string): Promise<void> {
    const { app, actions, tracker } = this.host;
    const panel = this.panelOf(this.node);
    if (!panel) {
      return;
    }
    if (tracker.currentWidget !== panel) {
      const inFront = new Promise<void>(resolve => {
        const slot = (): void => {
          if (tracker.currentWidget === panel) {
            tracker.currentChanged.disconnect(slot);
            resolve();
          }
        };
        tracker.currentChanged.connect(slot);
      });
      app.shell.activateById(panel.id);
      await inFront;
    }
    actions.resume?.(run);
  }

  private asked: IAsked | null = null;
  private sure = false;
}
