/** The two widgets of the extension: the panel in the side bar, and the views beside the notebook. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import { type Message } from '@lumino/messaging';
import { type ISignal, Signal } from '@lumino/signaling';
import * as React from 'react';
import type { IActions } from './actions';
import { Panel } from './components/panel';
import { Views } from './components/views';
import { WordsProvider } from './components/words';
import type { IWords } from './format';
import type { Store } from './store';
import type { ViewName } from './tokens';

export interface IOptions {
  store: Store;
  actions: IActions;
  words: IWords;
  cellName: (cell: string) => string;
}

export class PanelWidget extends ReactWidget {
  constructor(private readonly options: IOptions) {
    super();
    this.id = 'jupyter-durable-panel';
    this.addClass('jp-Durable');
    this.addClass('jp-Durable-panel');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', options.words.__('Durable cells'));
  }

  protected override render(): JSX.Element {
    const { store, actions, words, cellName } = this.options;
    return (
      <WordsProvider value={words}>
        <UseSignal signal={store.changed}>
          {() => <Panel store={store} actions={actions} cellName={cellName} />}
        </UseSignal>
      </WordsProvider>
    );
  }

  /** It has come into sight. */
  get shown(): ISignal<this, void> {
    return this._shown;
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._shown.emit();
  }

  /** Put the focus where a request is answered. */
  focusWait(request: string): void {
    // The side bar is laid out first, and takes the focus itself.
    requestAnimationFrame(() => {
      const items = [...this.node.querySelectorAll<HTMLElement>('[data-request]')];
      const item = items.find(each => each.dataset['request'] === request);
      const inside = '.jp-Durable-buttons button, [data-field]';
      (item?.querySelector<HTMLElement>(inside) ?? item)?.focus();
    });
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.focusInside();
  }

  /** Where the focus goes when the panel is opened: the line of the tree that has it. */
  focusInside(): void {
    const target =
      this.node.querySelector<HTMLElement>('[role="treeitem"][tabindex="0"]') ??
      this.node.querySelector<HTMLElement>('button, select');
    target?.focus();
  }

  private readonly _shown = new Signal<this, void>(this);
}

export class ViewsWidget extends ReactWidget {
  constructor(
    private readonly options: IOptions,
    private view: ViewName
  ) {
    super();
    this.id = 'jupyter-durable-views';
    this.addClass('jp-Durable');
    this.addClass('jp-Durable-views');
  }

  present(view: ViewName): void {
    this.view = view;
    this.update();
  }

  protected override render(): JSX.Element {
    const { store, actions, words } = this.options;
    return (
      <WordsProvider value={words}>
        <UseSignal signal={store.changed}>
          {() => (
            <Views store={store} actions={actions} view={this.view} onView={view => this.present(view)} />
          )}
        </UseSignal>
      </WordsProvider>
    );
  }
}
