/** The durable cells of a notebook: found, named, shown, and marked with how their run stands. */
import { type Cell, CodeCell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { type IWords, itemState } from './format';
import { findHeader } from './header';
import type { IRunItem } from './shapes';

export interface IDurableCell {
  cell: CodeCell;
  index: number;
  /** As its first line says; empty: it has none there. */
  name: string;
  /** The run that belongs to it, if it ran already. */
  run: IRunItem | null;
}

/** Names of runs that their cells gave none. */
const AUTOMATIC = /^(cell|code)-/;

/** The durable cells in the order of the notebook, each with its run. */
export function durableCells(panel: NotebookPanel, runs: readonly IRunItem[]): IDurableCell[] {
  const found: IDurableCell[] = [];
  panel.content.widgets.forEach((cell, index) => {
    const header = cell instanceof CodeCell ? findHeader(cell.model.sharedModel.getSource()) : null;
    if (cell instanceof CodeCell && header) {
      const id = cell.model.id;
      const run = runs.find(
        each =>
          each.here &&
          (header.name ? each.name === header.name : each.cell === id && AUTOMATIC.test(each.name))
      );
      found.push({ cell, index, name: header.name, run: run ?? null });
    }
  });
  return found;
}

export function findCell(panel: NotebookPanel, id: string): { cell: Cell; index: number } | null {
  const index = panel.content.widgets.findIndex(cell => cell.model.id === id);
  const cell = panel.content.widgets[index];
  return cell ? { cell, index } : null;
}

/** How people call a cell: by its number in brackets, else by its place. */
export function cellName(panel: NotebookPanel | null, id: string, words: IWords): string {
  const found = panel && id ? findCell(panel, id) : null;
  if (!found) {
    return id ? words.__('A cell that is gone') : words.__('Cell or script');
  }
  const number = found.cell instanceof CodeCell ? found.cell.model.executionCount : null;
  return number === null ? words.__('Cell %1', found.index + 1) : words.__('Cell [%1]', number);
}

/**
 * Scroll a cell into sight and mark it for a moment. The focus stays where it is.
 *
 * @param line - of the cell, from 1, that is selected in its editor; 0: none
 */
export async function reveal(panel: NotebookPanel, id: string, line: number): Promise<void> {
  const found = findCell(panel, id);
  if (!found) {
    return;
  }
  await panel.content.scrollToItem(found.index, 'smart');
  const editor = found.cell.editor;
  if (line > 0 && editor && line <= editor.lineCount) {
    editor.setCursorPosition({ line: line - 1, column: 0 });
    editor.revealPosition({ line: line - 1, column: 0 });
  }
  const node = found.cell.node;
  node.classList.remove('jp-Durable-flash');
  // Read a size, so that the browser notices the class as new and begins the animation again.
  void node.offsetWidth;
  node.classList.add('jp-Durable-flash');
  node.addEventListener('animationend', () => node.classList.remove('jp-Durable-flash'), { once: true });
}

const DOT = 'jp-Durable-dot';

/** Put a mark beside each durable cell, and take away those that are out of date. */
export function mark(
  panel: NotebookPanel,
  runs: readonly IRunItem[],
  shown: boolean,
  words: IWords,
  open: (run: string) => void
): void {
  const cells = shown ? durableCells(panel, runs) : [];
  const durable = new Map(cells.map(each => [each.cell.node, each]));
  for (const node of panel.content.node.querySelectorAll<HTMLElement>(`.${DOT}`)) {
    const cell = node.closest<HTMLElement>('.jp-Cell');
    if (!cell || !durable.has(cell)) {
      node.remove();
    }
  }
  for (const { cell, run } of cells) {
    // Inside of the input: what lies outside of a cell's box is clipped by the windowing of the notebook.
    const place = cell.node.querySelector<HTMLElement>('.jp-Cell-inputWrapper .jp-InputArea');
    if (!place) {
      continue;
    }
    let dot = place.querySelector<HTMLButtonElement>(`.${DOT}`);
    if (!dot) {
      dot = document.createElement('button');
      dot.type = 'button';
      place.appendChild(dot);
    }
    const state = run ? itemState(run, words) : null;
    const text = state
      ? words.__('Durable run %1: %2', run?.name ?? '', state.word)
      : words.__('Durable cell, not run yet');
    const drawn = `${state?.sign ?? '○'}|${text}`;
    dot.onclick = () => open(run?.run ?? '');
    if (dot.dataset.drawn !== drawn) {
      dot.dataset.drawn = drawn;
      dot.className = `${DOT} jp-mod-${state?.tone ?? 'calm'}`;
      dot.textContent = state?.sign ?? '○';
      dot.title = text;
      dot.setAttribute('aria-label', text);
    }
  }
}
