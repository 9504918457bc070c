/** Commands about branches and signals: what needs a form opens it in the panel. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { IWords } from './format';
import type { Store } from './store';
import { CommandIDs } from './tokens';

interface IWhat {
  store: Store;
  words: IWords;
  open: () => void;
}

const NOTHING = { args: { type: 'object', properties: {} } } as const;

export function addBranchCommands(app: JupyterFrontEnd, { store, words, open }: IWhat): void {
  const { commands } = app;
  commands.addCommand(CommandIDs.fork, {
    label: words.__('Fork at the Chosen Step …'),
    caption: words.__('Make a branch that begins anew at the step that is chosen in the panel'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          step: { type: 'number', description: words.__('Number of the step; without it, the chosen one') }
        }
      }
    },
    isEnabled: args => (args['step'] ?? store.step) !== null,
    execute: args => {
      if (typeof args['step'] === 'number') {
        store.chooseStep(args['step']);
      }
      // Opened first: a side bar that is shown takes the focus.
      open();
      requestAnimationFrame(() => store.openForm('fork'));
    }
  });
  commands.addCommand(CommandIDs.signal, {
    label: words.__('Send a Signal …'),
    caption: words.__('Send a value to the run that is chosen in the panel'),
    describedBy: NOTHING,
    isEnabled: () => store.item !== null,
    execute: () => {
      open();
      requestAnimationFrame(() => store.openForm('signal'));
    }
  });
  commands.addCommand(CommandIDs.switch, {
    label: words.__('Take up the Shown Branch Next'),
    caption: words.__('Choose the branch that is shown in the panel for the next run of its cell'),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          branch: {
            type: 'string',
            description: words.__('Name or id of a branch; without it, the shown one')
          }
        }
      }
    },
    isEnabled: () => store.branchItem !== null,
    execute: async args => {
      const branch = typeof args['branch'] === 'string' ? args['branch'] : store.shown;
      try {
        const done = await store.api?.switch({ run: store.run, branch });
        if (done) {
          Notification.info(done.message, { autoClose: 5000 });
        }
      } catch (reason) {
        Notification.warning(reason instanceof Error ? reason.message : String(reason), {
          autoClose: 10_000
        });
      }
      await store.refresh();
    }
  });
}
