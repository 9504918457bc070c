/** The extension: ties store, widgets, commands and notebook together. */
import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget, Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { INotebookTracker, NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { SplitPanel, type Widget } from '@lumino/widgets';
import type { IActions } from './actions';
import { asks, asksSentences, Heard, news, Region } from './announce';
import { Api } from './api';
import { cellName, mark, reveal } from './cells';
import { goTo, goToWait, waitingRuns, waits } from './components/waiting';
import { addCommands } from './commands';
import { watch } from './deaths';
import { again, sumOf } from './again';
import { askToSpend, confirmAgain } from './dialogs';
import { durableIcon } from './icon';
import { RestTransport } from './rest';
import { type IEnd, type IProspect, prospect, prospectText, Ran, resume, runWith } from './resume';
import type { IWaitItem } from './shapes';
import { StatusWidget } from './status';
import { Store } from './store';
import { CommandIDs, DOMAIN, PLUGIN_ID, type ViewName } from './tokens';
import { asksText, isAgreed, isDone, now } from './waits';
import { PanelWidget, ViewsWidget } from './widgets';

/** What the settings say; the schema explains each. */
interface IWishes {
  stateDots: boolean;
  notifyAfterKernelDeath: boolean;
  askBeforeResume: boolean;
  askBeforeRerun: boolean;
  resumeWhenAnswered: boolean;
  notifyQuestions: boolean;
  refreshSeconds: number;
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: 'The panel of durable cells: see, resume and compare their steps.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ITranslator, ICommandPalette, ISettingRegistry, ILayoutRestorer, IStatusBar],
  activate
};

export default plugin;

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  translator: ITranslator | null,
  palette: ICommandPalette | null,
  settings: ISettingRegistry | null,
  restorer: ILayoutRestorer | null,
  statusBar: IStatusBar | null
): void {
  const words = (translator ?? nullTranslator).load(DOMAIN);
  const transport = new RestTransport(app.serviceManager);
  const store = new Store(transport);
  const ran = new Ran();
  const wishes: IWishes = {
    stateDots: true,
    notifyAfterKernelDeath: true,
    askBeforeResume: true,
    askBeforeRerun: true,
    resumeWhenAnswered: false,
    notifyQuestions: true,
    refreshSeconds: 2
  };

  const open = (): void => {
    app.shell.activateById(panel.id);
  };
  const show = async (cell: string, line: number): Promise<void> => {
    if (tracker.currentWidget) {
      await reveal(tracker.currentWidget, cell, line);
    }
  };
  const going = new WeakSet<NotebookPanel>();
  /** What stands in notices about a notebook, until it is resumed. */
  const told = new WeakMap<NotebookPanel, string[]>();
  const remember = (notebook: NotebookPanel, id: string): void => {
    told.set(notebook, [...(told.get(notebook) ?? []), id]);
  };
  /** The cells of a prospect that this person has let go on, by an answer in the panel. */
  const agreedOf = (found: IProspect): Set<string> => {
    const person = store.about?.user ?? '';
    const agreed = found.cells.filter(({ run }) => run && isAgreed(run.run, store.waits ?? [], person));
    return new Set(agreed.map(each => each.cell.model.id));
  };
  const go = async (
    notebook: NotebookPanel,
    found: IProspect,
    flag = '',
    agreed: ReadonlySet<string> = agreedOf(found)
  ): Promise<void> => {
    if (going.has(notebook)) {
      Notification.info(words.__('The durable cells of this notebook are being resumed already.'), {
        autoClose: 3000
      });
      return;
    }
    going.add(notebook);
    told.get(notebook)?.forEach(id => Notification.dismiss(id));
    told.delete(notebook);
    try {
      const name = (cell: string): string => cellName(notebook, cell, words);
      const end = await resume(notebook, found, {
        words,
        ran,
        flag,
        agreed,
        ask: wishes.askBeforeResume
          ? (cell, ahead, more) => askToSpend(ahead?.name ?? name(cell.model.id), ahead, more, words)
          : null
      });
      await store.refresh();
      if (end.how === 'stopped') {
        tell(notebook, end);
      }
    } finally {
      going.delete(notebook);
      goOn();
    }
  };
  const tell = (notebook: NotebookPanel, end: IEnd): void => {
    const cell = end.cell?.model.id ?? '';
    const where = PathExt.basename(notebook.context.path);
    const id = Notification.warning(`${where}: ${end.message}`, {
      // Beside an open panel it would lie over the buttons that it asks for.
      autoClose: panel.isVisible ? 6000 : false,
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
    remember(notebook, id);
  };
  const ask = async (run: string): Promise<void> => {
    const notebook = tracker.currentWidget;
    await store.refresh();
    if (!notebook || !store.api) {
      return;
    }
    const found = await prospect(notebook, store.api, store.runs?.runs ?? [], run, store.waits ?? []);
    if (found.cells.length === 0) {
      const item = store.runs?.runs.find(each => each.run === run);
      Notification.info(
        item
          ? words.__('No cell of this notebook has the run %1 any more. Its log has the source.', item.name)
          : words.__('No durable cell of this notebook waits to be resumed.'),
        { autoClose: 5000 }
      );
    } else {
      await go(notebook, found);
    }
  };
  const goesOn = (): boolean => store.goOn ?? wishes.resumeWhenAnswered;
  /** Executions after which a run was let go on by itself: each once, or one that cannot go on would be run for ever. */
  const tried = new Set<string>();
  let alarm: ReturnType<typeof setTimeout> | undefined;
  /** Run the cell of a parked run again that was answered, or whose timer is over, where a person wants that. */
  const goOn = (): void => {
    clearTimeout(alarm);
    const notebook = tracker.currentWidget;
    const { api, runs, waits } = store;
    if (!notebook || !api || !runs || !waits || !goesOn() || api.notebook !== pathOf(app, notebook)) {
      return;
    }
    const parked = runs.runs.filter(run => run.here && run.status === 'parked');
    const moments = waits
      .filter(wait => !isDone(wait, now()) && parked.some(run => run.run === wait.run))
      .flatMap(wait => wait.until ?? []);
    if (moments.length > 0) {
      const rest = (Math.min(...moments) - now()) * 1000 + 50;
      alarm = setTimeout(() => void store.refresh(), Math.min(Math.max(rest, 50), 86_400_000));
    }
    const next = parked.find(run => store.canGoOn(run) && !tried.has(`${run.run}/${run.head}`));
    if (!next || going.has(notebook)) {
      return;
    }
    tried.add(`${next.run}/${next.head}`);
    void prospect(notebook, api, runs.runs, next.run, waits)
      .then(found =>
        found.cells.length === 0
          ? undefined
          : go(notebook, found, '', new Set(found.cells.map(each => each.cell.model.id)))
      )
      .catch(reason => console.warn('jupyter_durable: a parked run was not resumed.', reason));
  };
  store.changed.connect(goOn);
  /** Run everything of a prospect anew, if the person wants to pay for it again. */
  const startFresh = async (notebook: NotebookPanel, found: IProspect): Promise<void> => {
    const names = found.cells.map(each => each.run?.name ?? '').join(', ');
    const title = words.__('Start fresh?');
    const api = new Api(transport, pathOf(app, notebook));
    const whole = await Promise.all(
      found.cells.map(({ run }) => (run ? again(api, run.run, run.branch, 0) : sumOf([])))
    );
    if (!wishes.askBeforeRerun || (await confirmAgain(sumOf(whole), names, title, words))) {
      await go(notebook, found, '--fresh');
    }
  };
  const runFlag = async (
    notebook: NotebookPanel,
    cell: Parameters<typeof runWith>[1],
    flag: string
  ): Promise<void> => {
    await runWith(notebook, cell, flag);
    await store.refresh();
  };
  const actions: IActions = {
    reveal: (cell, line) => void show(cell, line),
    leave: () => {
      if (tracker.currentWidget) {
        app.shell.activateById(tracker.currentWidget.id);
        tracker.currentWidget.content.activate();
      }
    },
    goesOn,
    resume: run => void app.commands.execute(CommandIDs.resume, run ? { run } : {}),
    runFrom: (run, step) => void app.commands.execute(CommandIDs.from, { run, step }),
    copyStep: () => void app.commands.execute(CommandIDs.copy),
    view: name => void app.commands.execute(CommandIDs.view, { view: name })
  };
  const options = {
    store,
    actions,
    words,
    cellName: (cell: string) => cellName(tracker.currentWidget, cell, words)
  };

  const panel = new PanelWidget(options);
  panel.title.icon = durableIcon;
  panel.title.caption = words.__('Durable cells');
  app.shell.add(panel, 'right', { rank: 850, type: 'Durable' });
  restorer?.add(panel, panel.id);

  /** Open the panel where a request is answered. */
  const answer = (wait: IWaitItem): void => {
    goToWait(store, actions, wait);
    open();
    panel.focusWait(wait.request);
  };

  let views: MainAreaWidget<ViewsWidget> | null = null;
  const view = (name: ViewName): void => {
    if (!views || views.isDisposed) {
      const content = new ViewsWidget(options, name);
      views = new MainAreaWidget({ content });
      views.id = 'jupyter-durable-views-area';
      views.title.label = words.__('Durable cells');
      views.title.icon = durableIcon;
      views.title.closable = true;
      // Notebook 7 has its one notebook in the main area, and no place for another tab there.
      const notebook7 = app.name !== 'JupyterLab';
      app.shell.add(views, notebook7 ? 'down' : 'main', { mode: 'split-bottom' });
    }
    views.content.present(name);
    app.shell.activateById(views.id);
    makeRoom(views);
  };

  addCommands(app, palette, {
    store,
    tracker,
    words,
    open,
    view,
    resume: ask,
    asks: () => wishes.askBeforeRerun,
    waiting: () => {
      const [asked] = waits(store);
      const [first] = waitingRuns(store);
      if (asked) {
        answer(asked);
        return;
      }
      open();
      if (first) {
        goTo(store, actions, first);
      }
    },
    runWith: runFlag,
    reveal: show
  });

  const marks = (): void => {
    const notebook = tracker.currentWidget;
    if (notebook && store.api?.notebook === pathOf(app, notebook)) {
      mark(notebook, store.runs?.runs ?? [], wishes.stateDots, words, run => {
        if (run) {
          store.choose(run);
        }
        open();
      });
    }
  };
  store.changed.connect(marks);
  const region = new Region();
  let heard = new Heard();
  let heardOf = '';
  /** Notices about requests that wait. */
  const notices = new Map<string, string>();
  store.changed.connect(() => {
    if (store.runs && store.waits && store.api && store.phase === 'ready') {
      if (heardOf !== store.api.notebook) {
        heardOf = store.api.notebook;
        heard = new Heard();
      }
      const runs = store.runs.runs.filter(run => run.here);
      const here = new Set(runs.map(run => run.run));
      const open = store.waits.filter(wait => here.has(wait.run));
      const fresh = asks(heard, open);
      region.say([...news(heard, runs, words), ...asksSentences(fresh, words)]);
      fresh.forEach(notice);
      for (const [request, id] of notices) {
        if (!open.some(wait => wait.request === request && wait.answered === null)) {
          Notification.dismiss(id);
          notices.delete(request);
        }
      }
    }
  });

  /** Say that a run asks, where nobody sees the panel. */
  const notice = (wait: IWaitItem): void => {
    if (!wishes.notifyQuestions || (panel.isVisible && !document.hidden)) {
      return;
    }
    const id = Notification.info(asksText(wait, words), {
      autoClose: false,
      actions: [{ label: words.__('Answer'), displayType: 'accent', callback: () => answer(wait) }]
    });
    notices.set(wait.request, id);
  };

  panel.shown.connect(() => {
    notices.forEach(id => Notification.dismiss(id));
    notices.clear();
  });

  const follow = (): void => {
    const notebook = tracker.currentWidget;
    // A side bar or a view that takes the focus does not close the notebook.
    store.setNotebook(notebook ? pathOf(app, notebook) : null);
    marks();
  };
  tracker.currentChanged.connect(follow);
  tracker.widgetAdded.connect((_, notebook) => {
    let path = pathOf(app, notebook);
    notebook.context.pathChanged.connect(() => {
      const before = path;
      path = pathOf(app, notebook);
      store.moved(before, path);
      follow();
    });
    void notebook.context.ready.then(() => {
      follow();
      notebook.content.model?.contentChanged.connect(marks);
    });
    watch(
      notebook,
      () => {
        ran.forget(notebook);
        void store.refresh();
      },
      () => void offer(notebook)
    );
  });
  follow();

  const offer = async (notebook: NotebookPanel): Promise<void> => {
    await store.refresh();
    if (!wishes.notifyAfterKernelDeath || notebook.isDisposed) {
      return;
    }
    // Not the store's: another notebook may be in front by now.
    const api = new Api(transport, pathOf(app, notebook));
    const runs = await api.runs().catch(() => null);
    const found = runs && (await prospect(notebook, api, runs.runs).catch(() => null));
    if (!found || found.cells.length === 0) {
      return;
    }
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
          { label: words.__('Resume'), displayType: 'accent', callback: () => void go(notebook, found) },
          {
            label: words.__('Review'),
            callback: () => {
              if (first && tracker.currentWidget === notebook) {
                store.choose(first);
              }
              open();
            }
          },
          {
            label: words.__('Start fresh'),
            displayType: 'warn',
            callback: () => void startFresh(notebook, found)
          }
        ]
      }
    );
    remember(notebook, id);
  };

  NotebookActions.executed.connect((_, { notebook, cell, success }) => {
    const owner = tracker.find(each => each.content === notebook);
    if (owner && success) {
      ran.add(owner, cell.model.id);
    }
    void store.refresh();
  });
  NotebookActions.executionScheduled.connect(() => void store.refresh());

  if (statusBar) {
    const item = new StatusWidget(store, words, open);
    statusBar.registerStatusItem('jupyter-durable:status', { item, align: 'left', rank: 50 });
  }
  void settings?.load(PLUGIN_ID).then(loaded => {
    const read = (): void => {
      Object.assign(wishes, loaded.composite);
      store.interval = wishes.refreshSeconds * 1000;
      marks();
    };
    loaded.changed.connect(read);
    read();
  });
}

/** Notebook 7 opens its lower area as low as it may be; a widget above or beside the notebook stays as it is. */
function makeRoom(widget: Widget): void {
  for (let above = widget.parent; above; above = above.parent) {
    if (above instanceof SplitPanel && above.orientation === 'vertical') {
      if ((above.relativeSizes()[1] ?? 1) < 0.2) {
        above.setRelativeSizes([3, 2]);
      }
      return;
    }
  }
}

/** The path of a notebook as the server has it: without the name of a drive in front. */
function pathOf(app: JupyterFrontEnd, notebook: NotebookPanel): string {
  return app.serviceManager.contents.localPath(notebook.context.path);
}
