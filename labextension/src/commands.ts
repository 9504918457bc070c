/** Every action as a command: for the palette, menus, toolbars, and other extensions. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Clipboard, type ICommandPalette, Notification } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { refreshIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { again } from './again';
import { addBranchCommands } from './branchCommands';
import { addCancelCommands } from './cancelCommands';
import { durableCells } from './cells';
import { confirmAgain } from './dialogs';
import { codeOf } from './code';
import { countWaiting } from './components/waiting';
import type { IWords } from './format';
import { findHeader } from './header';
import { durableIcon, freshIcon, resumeIcon } from './icon';
import type { IRunItem } from './shapes';
import type { Store } from './store';
import { CommandIDs, VIEWS, type ViewName } from './tokens';

interface IWhat {
  store: Store;
  tracker: INotebookTracker;
  words: IWords;
  open: () => void;
  view: (view: ViewName) => void;
  resume: (run: string, anyway: boolean) => Promise<void>;
  /** Whether a person is asked before finished steps are executed again. */
  asks: () => boolean;
  waiting: () => void;
  runWith: (panel: NotebookPanel, cell: CodeCell, flag: string) => Promise<unknown>;
  reveal: (cell: string, line: number) => Promise<void>;
}

const NOTHING = { args: { type: 'object', properties: {} } } as const;

export function addCommands(app: JupyterFrontEnd, palette: ICommandPalette | null, what: IWhat): void {
  const { store, tracker, words } = what;
  const { commands } = app;
  const sure = async (
    item: IRunItem | null,
    branch: string,
    from: number,
    title: string
  ): Promise<boolean> => {
    if (!what.asks() || !item || !store.api) {
      return true;
    }
    return confirmAgain(await again(store.api, item.run, branch, from), item.name, title, words);
  };
  const active = (): CodeCell | null => {
    const cell = tracker.activeCell;
    return cell instanceof CodeCell && findHeader(cell.model.sharedModel.getSource()) ? cell : null;
  };
  /** The cell that is meant: that of the run in the arguments, else the active one. */
  const meant = (args: ReadonlyPartialJSONObject): CodeCell | null => {
    const panel = tracker.currentWidget;
    if (typeof args['run'] === 'string' && panel) {
      const cells = durableCells(panel, store.runs?.runs ?? []);
      return cells.find(each => each.run?.run === args['run'])?.cell ?? null;
    }
    return active();
  };

  commands.addCommand(CommandIDs.open, {
    label: words.__('Show Durable Cells'),
    caption: words.__('Steps, spend and history of the durable cells of this notebook'),
    icon: durableIcon,
    describedBy: NOTHING,
    execute: () => what.open()
  });
  commands.addCommand(CommandIDs.refresh, {
    label: words.__('Ask the Log Again'),
    icon: refreshIcon,
    describedBy: NOTHING,
    execute: () => store.refresh()
  });
  commands.addCommand(CommandIDs.resume, {
    label: words.__('Resume Durable Cells'),
    caption: words.__(
      'Run the durable cells that did not come to their end; finished steps come back from the log'
    ),
    icon: resumeIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: {
          run: { type: 'string', description: words.__('Id of the run to resume; without it, all') },
          anyway: {
            type: 'boolean',
            description: words.__('Run its cell also if the run has come to its end')
          }
        }
      }
    },
    isEnabled: args =>
      (store.runs?.runs ?? []).some(run =>
        args['run'] ? run.run === args['run'] : run.here && store.canGoOn(run)
      ),
    execute: args => what.resume(typeof args['run'] === 'string' ? args['run'] : '', args['anyway'] === true)
  });
  commands.addCommand(CommandIDs.waiting, {
    label: words.__('Show What Waits for You'),
    caption: words.__('Go to the first question, step or run that waits for a person'),
    describedBy: NOTHING,
    isEnabled: () => countWaiting(store) > 0,
    execute: () => what.waiting()
  });
  commands.addCommand(CommandIDs.view, {
    label: args => {
      switch (args['view']) {
        case 'compare':
          return words.__('Compare Branches');
        case 'spend':
          return words.__('Spend');
        case 'sql':
          return words.__('Query the Log (SQL)');
        default:
          return words.__('Timeline of Steps');
      }
    },
    describedBy: {
      args: {
        type: 'object',
        properties: {
          view: { type: 'string', enum: [...VIEWS], description: words.__('Which view to show') }
        }
      }
    },
    execute: args => what.view(VIEWS.find(view => view === args['view']) ?? 'timeline')
  });
  const run = {
    type: 'string',
    description: words.__('Id of a run of the notebook; without it, the active cell is meant')
  };
  commands.addCommand(CommandIDs.fresh, {
    label: words.__('Run Durable Cell Fresh'),
    caption: words.__('Begin a new branch with nothing reused; everything is executed and paid again'),
    icon: freshIcon,
    describedBy: { args: { type: 'object', properties: { run } } },
    isEnabled: args => meant(args) !== null,
    isVisible: args => meant(args) !== null,
    execute: async args => {
      const cell = meant(args);
      const panel = tracker.currentWidget;
      if (cell && panel) {
        const item = durableCells(panel, store.runs?.runs ?? []).find(each => each.cell === cell)?.run;
        if (await sure(item ?? null, item?.branch ?? '', 0, words.__('Run fresh?'))) {
          await what.runWith(panel, cell, '--fresh');
        }
      }
    }
  });
  commands.addCommand(CommandIDs.from, {
    label: words.__('Run Durable Cell from the Chosen Step'),
    caption: words.__('Keep what is before the step that is chosen in the panel, and execute the rest again'),
    describedBy: {
      args: {
        type: 'object',
        properties: { run, step: { type: 'number', description: words.__('Number of the step') } }
      }
    },
    isEnabled: args =>
      (args['step'] ?? store.step) !== null && meant({ run: args['run'] ?? store.run }) !== null,
    execute: async args => {
      const cell = meant({ run: args['run'] ?? store.run });
      const step = args['step'] ?? store.step;
      const panel = tracker.currentWidget;
      if (!cell || !panel || typeof step !== 'number') {
        return;
      }
      const item = store.item;
      if (await sure(item, store.shown, step, words.__('Run from this step?'))) {
        // A number is one of the newest branch; a step of another one is found by its name.
        const label = store.history.rows.get(step)?.label ?? '';
        const named = item && store.shown !== item.branch && label ? `"${label.replace(/"/g, '')}"` : step;
        await what.runWith(panel, cell, `--from ${named}`);
      }
    }
  });
  commands.addCommand(CommandIDs.history, {
    label: words.__('Show History of Durable Cell'),
    icon: durableIcon,
    describedBy: { args: { type: 'object', properties: { run } } },
    isVisible: args => meant(args) !== null,
    execute: args => {
      const cell = meant(args);
      const panel = tracker.currentWidget;
      const found = panel && durableCells(panel, store.runs?.runs ?? []).find(each => each.cell === cell);
      if (found?.run) {
        store.choose(found.run.run);
      }
      what.open();
    }
  });
  commands.addCommand(CommandIDs.reveal, {
    label: words.__('Show the Cell of the Chosen Step'),
    describedBy: {
      args: {
        type: 'object',
        properties: { cell: { type: 'string', description: words.__('Id of the cell') } }
      }
    },
    isEnabled: args => typeof args['cell'] === 'string' || store.step !== null,
    execute: args => {
      const row = store.step === null ? undefined : store.history.rows.get(store.step);
      return what.reveal(typeof args['cell'] === 'string' ? args['cell'] : (row?.cell ?? ''), row?.line ?? 0);
    }
  });
  commands.addCommand(CommandIDs.copy, {
    label: words.__('Copy the Chosen Step as Code'),
    describedBy: NOTHING,
    isEnabled: () => store.step !== null,
    execute: async () => {
      const { api, run, shown, step } = store;
      if (api && step !== null) {
        Clipboard.copyToSystem(codeOf(await api.step(run, shown, step)));
        Notification.info(words.__('The step is in the clipboard, as Python that asks the log for it.'), {
          autoClose: 3000
        });
      }
    }
  });
  addBranchCommands(app, { store, words, open: what.open });
  addCancelCommands(app, { store, tracker, words, open: what.open, active });
  store.changed.connect(() => commands.notifyCommandChanged());

  if (palette) {
    const category = words.__('Durable');
    for (const command of Object.values(CommandIDs).filter(each => each !== CommandIDs.view)) {
      palette.addItem({ command, category });
    }
    for (const view of VIEWS) {
      palette.addItem({ command: CommandIDs.view, category, args: { view } });
    }
  }
}
