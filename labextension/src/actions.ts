/**
 * What a person can do from the panel. Each deed is one entry of a list below: the panel draws a button for it, and
 * `commands.ts` makes a command of it. A new one is a new entry, and a sentence in `docs/panel.md`.
 */
import { canCancel, canCancelChild } from './cancelling';
import type { IWords } from './format';
import type { IStepRow } from './shapes';
import type { Form, Store } from './store';
import type { ViewName } from './tokens';

/** What is done outside of the panel. Where there is no notebook around it, some of it cannot be done. */
export interface IActions {
  /** Show a cell of the notebook, and a line of it (from 1; 0: none). */
  reveal?: (cell: string, line: number) => void;
  /** Out of the steps: back to the notebook. */
  leave: () => void;
  /** Run the cell of an unfinished run again; without a run, those of all of them. */
  resume?: (run?: string) => void;
  /** The same for a run that may have come to its end, since another branch of it is taken up next. */
  runCell?: (run: string) => void;
  /** Whether cells are run again by themselves once they can go on; absent where that cannot be. */
  goesOn?: () => boolean;
  /** Run the cell of a run on a new branch, with nothing reused. */
  fresh?: (run: string) => void;
  /** Run the cell of a run again, from a step on. */
  runFrom?: (run: string, step: number) => void;
  /** Put the chosen step into the clipboard, as Python that asks the log for it. */
  copyStep?: () => void;
  view: (name: ViewName) => void;
}

interface IDeed {
  /** Unlike that of any other. */
  id: string;
  label: (words: IWords) => string;
  /** The form that it opens, if it does. */
  form?: Form;
}

/** Something to do with a step. */
export interface IStepDeed extends IDeed {
  /** Does it; `null`: it cannot be done with this step, or not here. */
  of: (actions: IActions, store: Store, row: IStepRow) => (() => void) | null;
}

/** Something to do with the run and branch that are shown. */
export interface IRunDeed extends IDeed {
  of: (actions: IActions, store: Store) => (() => void) | null;
}

/** The buttons in the details of a step, in order. */
export const STEP_DEEDS: readonly IStepDeed[] = [
  {
    id: 'reveal',
    label: words => words.__('Show cell'),
    of: ({ reveal }, _, row) => (reveal ? () => reveal(row.cell, row.line) : null)
  },
  {
    id: 'run-from',
    label: words => words.__('Run from here'),
    of: ({ runFrom }, store, row) => (runFrom ? () => runFrom(store.run, row.number) : null)
  },
  {
    id: 'fork',
    label: words => words.__('Fork here …'),
    form: 'fork',
    of: (_, store) => () => store.toggleForm('fork')
  },
  {
    id: 'copy',
    label: words => words.__('Copy as code'),
    of: ({ copyStep }) => copyStep ?? null
  },
  {
    id: 'cancel-child',
    label: words => words.__('Cancel the child run …'),
    form: 'cancel-child',
    of: (_, store, row) =>
      canCancelChild(row, store.history, store.item, store.shown)
        ? () => store.toggleForm('cancel-child')
        : null
  }
];

/** The buttons of the run, below its views, in order. */
export const RUN_DEEDS: readonly IRunDeed[] = [
  {
    id: 'signal',
    label: words => words.__('Send a signal …'),
    form: 'signal',
    of: (_, store) => () => store.toggleForm('signal')
  },
  {
    id: 'cancel',
    label: words => words.__('Cancel …'),
    form: 'cancel',
    of: (_, store) => (store.item && canCancel(store.item) ? () => store.toggleForm('cancel') : null)
  }
];
