import type { ViewName } from './tokens';

/** What a person can do from the panel. Where there is no notebook around it, some of it cannot be done. */
export interface IActions {
  /** Show a cell of the notebook, and a line of it (from 1; 0: none). */
  reveal?: (cell: string, line: number) => void;
  /** Out of the steps: back to the notebook. */
  leave: () => void;
  /** Run the cell of an unfinished run again; without a run, those of all of them. */
  resume?: (run?: string) => void;
  /** Whether cells are run again by themselves once they can go on; absent where that cannot be. */
  goesOn?: () => boolean;
  /** Run the cell of a run again, from a step on. */
  runFrom?: (run: string, step: number) => void;
  /** Put the chosen step into the clipboard, as Python that asks the log for it. */
  copyStep?: () => void;
  view: (name: ViewName) => void;
}
