/** What the parts of the extension share. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IActions } from './actions';
import type { IWords } from './format';
import type { Store } from './store';
import type { ITransport } from './transport';
import type { IWishes } from './wishes';

export interface IHost {
  app: JupyterFrontEnd;
  tracker: INotebookTracker;
  words: IWords;
  transport: ITransport;
  store: Store;
  actions: IActions;
  wishes: IWishes;
  /** Show the panel. */
  open: () => void;
  /** Whether it is in sight. */
  isOpen: () => boolean;
}

/** The path of a notebook as the server has it: without the name of a drive in front. */
export function pathOf(app: JupyterFrontEnd, notebook: NotebookPanel): string {
  return app.serviceManager.contents.localPath(notebook.context.path);
}
