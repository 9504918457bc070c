/** Tells when the kernel of a notebook died or was restarted, which JupyterLab says in passing only. */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';

/**
 * Watch one notebook until it is closed.
 *
 * @param gone - its variables are lost
 * @param back - there is a kernel again, after one died
 */
export function watch(panel: NotebookPanel, gone: () => void, back: () => void): void {
  let died = false;
  const onStatus = (context: ISessionContext, status: Kernel.Status): void => {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      gone();
    }
    if (status === 'autorestarting' || status === 'dead') {
      died = true;
    }
    if (status === 'dead') {
      died = false;
      back();
    }
  };
  // After a death the status stays at `starting` until something is executed: the connection tells more.
  const onConnection = (context: ISessionContext, status: Kernel.ConnectionStatus): void => {
    if (died && status === 'connected') {
      died = false;
      back();
    }
  };
  const onKernel = (): void => gone();
  const context = panel.sessionContext;
  context.statusChanged.connect(onStatus);
  context.connectionStatusChanged.connect(onConnection);
  context.kernelChanged.connect(onKernel);
  panel.disposed.connect(() => {
    context.statusChanged.disconnect(onStatus);
    context.connectionStatusChanged.disconnect(onConnection);
    context.kernelChanged.disconnect(onKernel);
  });
}
