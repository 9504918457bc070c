/** What a person can do from the panel; `index.ts` ties it to commands. */
export interface IActions {
  /** Show a cell of the notebook, and a line of it (from 1; 0: none). */
  reveal(cell: string, line: number): void;
  /** Back to the notebook. */
  leave(): void;
  /** Run the cells of unfinished runs again. */
  resume(): void;
  /** Run the cell of a run anew with nothing reused, or from a step on. */
  runFresh(run: string): void;
  runFrom(run: string, step: number): void;
  copy(text: string): void;
  view(name: string): void;
}
