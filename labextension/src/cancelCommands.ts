/** Commands that end runs and child runs: each opens the form of the panel, which asks for a reason. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { CodeCell } from '@jupyterlab/cells';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { canCancel, canCancelChild } from './cancelling';
import { durableCells } from './cells';
import type { IWords } from './format';
import type { IRunItem, IStepRow } from './shapes';
import type { Store } from './store';
import { CommandIDs } from './tokens';

interface IWhat {
  store: Store;
  tracker: INotebookTracker;
  words: IWords;
  open: () => void;
  /** The durable cell that is active in the notebook. */
  active: () => CodeCell | null;
}

export function addCancelCommands(app: JupyterFrontEnd, what: IWhat): void {
  const { store, tracker, words, open, active } = what;
  const { commands } = app;
  /** The run that is meant: that of the arguments, of the active cell, or the one that is shown. */
  const meant = (args: ReadonlyPartialJSONObject): IRunItem | null => {
    const runs = store.runs?.runs ?? [];
    if (typeof args['run'] === 'string') {
      return runs.find(run => run.run === args['run']) ?? null;
    }
    const panel = tracker.currentWidget;
    if (args['cell'] === true && panel) {
      const cell = active();
      return durableCells(panel, runs).find(each => each.cell === cell)?.run ?? null;
    }
    return store.item;
  };
  const can = (args: ReadonlyPartialJSONObject): boolean => {
    const run = meant(args);
    return run !== null && canCancel(run);
  };
  commands.addCommand(CommandIDs.cancel, {
    label: args => (args['cell'] === true ? words.__('Cancel Durable Run …') : words.__('Cancel the Run …')),
    caption: words.__('End the run at its next await or step; it goes on only when it is resumed'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          run: { type: 'string', description: words.__('Id of the run; without it, the one that is shown') },
          cell: { type: 'boolean', description: words.__('The run of the active cell is meant') }
        }
      }
    },
    isEnabled: can,
    // In the menu of a cell it stands only where there is something to cancel.
    isVisible: args => args['cell'] !== true || can(args),
    execute: args => {
      const run = meant(args);
      if (run) {
        if (run.run !== store.run) {
          store.choose(run.run);
        }
        // Opened first: a side bar that is shown takes the focus.
        open();
        requestAnimationFrame(() => store.openForm('cancel'));
      }
    }
  });
  const child = (args: ReadonlyPartialJSONObject): IStepRow | null => {
    const step = args['step'] ?? store.step;
    const row = typeof step === 'number' ? store.history.rows.get(step) : undefined;
    return row && canCancelChild(row, store.history, store.item, store.shown) ? row : null;
  };
  commands.addCommand(CommandIDs.cancelChild, {
    label: words.__('Cancel the Child Run …'),
    caption: words.__('End the child run that is chosen in the panel; its parent may go on without it'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          step: {
            type: 'number',
            description: words.__('Number of the child run among the steps; without it, the chosen one')
          }
        }
      }
    },
    isEnabled: args => child(args) !== null,
    isVisible: args => child(args) !== null,
    execute: args => {
      const row = child(args);
      if (row) {
        store.chooseStep(row.number);
        open();
        requestAnimationFrame(() => store.openForm('cancel-child'));
      }
    }
  });
}
