/**
 * The panel in an output cell, as an anywidget: `durable.panel()`. Bundled with all that it needs into
 * `jupyter_durable/widget/static`, since VS Code, Colab and others have none of JupyterLab's packages.
 */
import * as React from 'react';
import { createRoot } from 'react-dom/client';
import { asks, asksSentences, Heard, news, Region } from './announce';
import { Output } from './components/output';
import { WordsProvider } from './components/words';
import { type IModel, MessageTransport } from './messages';
import { plainWords } from './plainWords';
import { Store } from './store';
import { isDark, onTheme } from './theme';

interface IRendered {
  model: IModel;
  el: HTMLElement;
}

/** Draw the panel into an element; the answer removes it. */
export function render({ model, el }: IRendered): () => void {
  const outer = document.createElement('div');
  const inner = document.createElement('div');
  outer.className = 'jp-Durable-output';
  inner.className = 'jp-Durable jp-Durable-panel';
  inner.setAttribute('role', 'region');
  inner.setAttribute('aria-label', plainWords.__('Durable cells'));
  // Or a letter that is typed here would be a command of the notebook.
  inner.dataset['lmSuppressShortcuts'] = 'true';
  outer.append(inner);
  el.append(outer);

  const region = new Region(outer);
  const heard = new Heard();
  const speak = (): void => {
    if (!store.runs || !store.waits || store.phase !== 'ready') {
      return;
    }
    const listed = new Set(store.listed.map(run => run.run));
    const fresh = asks(
      heard,
      store.waits.filter(wait => listed.has(wait.run))
    );
    const said = [...news(heard, store.listed, plainWords), ...asksSentences(fresh, plainWords)];
    // JupyterLab's extension says it for the whole page; of several panels the first one does.
    const all = [...document.querySelectorAll('.jp-Durable-live')];
    if (all[0] === region.node && all.every(each => each.parentElement !== document.body)) {
      region.say(said);
    }
  };
  const transport = new MessageTransport(model, () => draw());
  const store = new Store(transport);
  const root = createRoot(inner);
  const leave = (): void => {
    const focused = (inner.getRootNode() as Document | ShadowRoot).activeElement;
    if (focused instanceof HTMLElement) {
      focused.blur();
    }
  };
  const draw = (): void =>
    root.render(
      <WordsProvider value={plainWords}>
        <Output store={store} hearing={transport.hearing} leave={leave} />
      </WordsProvider>
    );
  const theme = (): void => {
    outer.classList.toggle('jp-mod-dark', isDark(el));
  };
  const size = (): void => {
    inner.style.height = `${Number(model.get('height')) || 480}px`;
  };
  const stop = onTheme(theme);
  model.on('change:height', size);
  store.changed.connect(draw);
  store.changed.connect(speak);
  theme();
  size();
  const notebook = String(model.get('notebook') ?? '');
  store.wish = String(model.get('run') ?? '');
  store.setNotebook(notebook);
  if (!notebook) {
    store.showOthers();
  }
  draw();
  return () => {
    stop();
    model.off('change:height', size);
    store.dispose();
    transport.dispose();
    root.unmount();
    outer.remove();
  };
}

export default { render };
