/** The extension: ties store, widgets, commands and notebook together. */
import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { IActions } from './actions';
import { CellButtons } from './cellButtons';
import { cellName, reveal } from './cells';
import { addCommands } from './commands';
import { goTo, goToWait, waitingRuns, waits } from './components/waiting';
import { Following } from './following';
import type { IHost } from './host';
import { durableIcon } from './icon';
import { Notices } from './notices';
import { RestTransport } from './rest';
import { Resuming } from './resuming';
import type { IWaitItem } from './shapes';
import { StatusWidget } from './status';
import { Store } from './store';
import { CommandIDs, DOMAIN, PLUGIN_ID } from './tokens';
import { ViewsArea } from './viewsArea';
import { PanelWidget } from './widgets';
import { WISHES } from './wishes';

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
  const wishes = { ...WISHES };

  const open = (): void => {
    app.shell.activateById(panel.id);
  };
  const show = async (cell: string, line: number): Promise<void> => {
    if (tracker.currentWidget) {
      await reveal(tracker.currentWidget, cell, line);
    }
  };
  const actions: IActions = {
    reveal: (cell, line) => void show(cell, line),
    leave: () => {
      if (tracker.currentWidget) {
        app.shell.activateById(tracker.currentWidget.id);
        tracker.currentWidget.content.activate();
      }
    },
    goesOn: () => resuming.goesOn,
    resume: run => void app.commands.execute(CommandIDs.resume, run ? { run } : {}),
    runCell: run => void app.commands.execute(CommandIDs.resume, { run, anyway: true }),
    fresh: run => void app.commands.execute(CommandIDs.fresh, { run }),
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
  const isOpen = (): boolean => panel.isVisible;
  const host: IHost = { app, tracker, words, transport, store, actions, wishes, open, isOpen };
  const notices = new Notices(host, answer);
  const resuming = new Resuming(host, notices);
  const following = new Following(host, resuming);
  new CellButtons(host);
  const views = new ViewsArea(app, options);
  panel.shown.connect(() => notices.seen());

  addCommands(app, palette, {
    store,
    tracker,
    words,
    open,
    view: name => views.show(name),
    resume: (run, anyway) => resuming.ask(run, anyway),
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
    runWith: (notebook, cell, flag) => resuming.runWith(notebook, cell, flag),
    reveal: show
  });

  if (statusBar) {
    const item = new StatusWidget(store, words, open);
    statusBar.registerStatusItem('jupyter-durable:status', { item, align: 'left', rank: 50 });
  }
  void settings?.load(PLUGIN_ID).then(loaded => {
    const read = (): void => {
      Object.assign(wishes, loaded.composite);
      store.interval = wishes.refreshSeconds * 1000;
      following.mark();
    };
    loaded.changed.connect(read);
    read();
  });
}
