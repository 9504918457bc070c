/** Names that several files, the schema and other extensions use. */

export const PLUGIN_ID = 'jupyter-durable:plugin';

/** Domain of the translations. */
export const DOMAIN = 'jupyter_durable';

/** Where the server extension answers, below the server's base URL. */
export const ROUTE = 'jupyter-durable/v1';

export const CommandIDs = {
  open: 'jupyter-durable:open',
  resume: 'jupyter-durable:resume',
  refresh: 'jupyter-durable:refresh',
  view: 'jupyter-durable:view',
  fresh: 'jupyter-durable:run-fresh',
  from: 'jupyter-durable:run-from',
  history: 'jupyter-durable:show-history',
  reveal: 'jupyter-durable:reveal',
  copy: 'jupyter-durable:copy-step',
  waiting: 'jupyter-durable:show-waiting',
  fork: 'jupyter-durable:fork',
  switch: 'jupyter-durable:switch-branch',
  signal: 'jupyter-durable:send-signal',
  cancel: 'jupyter-durable:cancel',
  cancelChild: 'jupyter-durable:cancel-child'
} as const;

/** The views that open beside the notebook. */
export const VIEWS = ['timeline', 'compare', 'spend', 'sql'] as const;
export type ViewName = (typeof VIEWS)[number];
