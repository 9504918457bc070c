/** Every action as a command: for the palette, menus, toolbars, and other extensions. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { refreshIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { durableCells } from './cells';
import { codeOf } from './components/details';
import { type IWords, isUnfinished } from './format';
import { findHeader } from './header';
import { durableIcon, resumeIcon } from './icon';
import type { Store } from './store';
import { CommandIDs, VIEWS, type ViewName } from './tokens';

interface IWhat {
  store: Store;
  tracker: INotebookTracker;
  words: IWords;
  open: () => void;
  view: (view: ViewName) => void;
  resume: () => Promise<void>;
  runWith: (panel: NotebookPanel, cell: CodeCell, flag: string) => Promise<unknown>;
  reveal: (cell: string, line: number) => Promise<void>;
}

const NOTHING = { args: { type: 'object', properties: {} } } as const;

export function addCommands(app: JupyterFrontEnd, palette: ICommandPalette | null, what: IWhat): void {
  const { store, tracker, words } = what;
  const { commands } = app;
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
    describedBy: NOTHING,
    isEnabled: () => (store.runs?.runs ?? []).some(run => run.here && isUnfinished(run)),
    execute: () => what.resume()
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
    describedBy: { args: { type: 'object', properties: { run } } },
    isEnabled: args => meant(args) !== null,
    isVisible: args => meant(args) !== null,
    execute: async args => {
      const cell = meant(args);
      if (cell && tracker.currentWidget) {
        await what.runWith(tracker.currentWidget, cell, '--fresh');
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
      if (cell && tracker.currentWidget && typeof step === 'number') {
        await what.runWith(tracker.currentWidget, cell, `--from ${step}`);
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
    execute: () => navigator.clipboard.writeText(codeOf(store, store.step ?? 0))
  });
  store.changed.connect(() => commands.notifyCommandChanged());

  if (palette) {
    const category = words.__('Durable');
    const { open, resume, refresh, fresh, from, history, reveal, copy } = CommandIDs;
    for (const command of [open, resume, refresh, fresh, from, history, reveal, copy]) {
      palette.addItem({ command, category });
    }
    for (const view of VIEWS) {
      palette.addItem({ command: CommandIDs.view, category, args: { view } });
    }
  }
}
