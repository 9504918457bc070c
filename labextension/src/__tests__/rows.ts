/** Rows and pages to test with. */
import type { IBranchItem, IKeptItem, IPage, IRunItem, IStepRow, IWaitItem } from '../shapes';

export function row(number: number, other: Partial<IStepRow> = {}): IStepRow {
  return {
    number,
    changed: number,
    name: 'ask',
    label: 'ask',
    kind: 'step',
    status: 'completed',
    scope: '',
    parent: null,
    cell: 'c',
    line: 0,
    execution: 'x1',
    started: number,
    ended: number + 1,
    seconds: 1,
    attempts: 1,
    why: '',
    error: null,
    usage: null,
    saved: null,
    outputs: 0,
    notices: 0,
    progress: null,
    beat: null,
    missed: '',
    ...other
  };
}

export function page(rows: IStepRow[], other: Partial<IPage> = {}): IPage {
  return {
    format: 1,
    log: '/log',
    run: 'r',
    branch: 'r.1',
    branch_name: 'main',
    rows,
    next: rows.length,
    epoch: '',
    reset: false,
    more: false,
    head: 0,
    running: '',
    newest: 'x9',
    newest_status: 'completed',
    progress: null,
    totals: {
      steps: rows.length,
      by_status: {},
      calls: 0,
      tokens: 0,
      cost: 0,
      unpriced: 0,
      unknown: 0,
      replayed_calls: 0,
      replayed_tokens: 0,
      replayed_cost: 0
    },
    notices: [],
    untrusted: '',
    damaged: '',
    ...other
  };
}

export function waitItem(other: Partial<IWaitItem> = {}): IWaitItem {
  return {
    run: 'r',
    run_name: 'mails',
    branch: 'r.1',
    branch_name: 'main',
    number: 3,
    request: 'q1',
    kind: 'approval',
    signal: '',
    child: '',
    question: 'Send it?',
    choices: [],
    schema: { type: 'boolean' },
    shown: [],
    until: null,
    running: false,
    cell: 'c',
    notebook: '/n.ipynb',
    answered: null,
    ...other
  };
}

export function keptItem(other: Partial<IKeptItem> = {}): IKeptItem {
  return {
    run: 'r',
    run_name: 'mails',
    branch: 'r.1',
    branch_name: 'main',
    signal: 'payment',
    id: 's1',
    by: 'ana',
    via: 'panel',
    at: 1,
    ...other
  };
}

export function runItem(other: Partial<IRunItem> = {}): IRunItem {
  return {
    run: 'r',
    name: 'mails',
    status: 'completed',
    branch: 'r.1',
    branch_name: 'main',
    next: '',
    branches: 1,
    executions: 1,
    replayed: null,
    live: null,
    started: 1,
    ended: null,
    head: 1,
    notebook: '/n.ipynb',
    here: true,
    cell: 'c',
    error: null,
    waits: null,
    ...other
  };
}

export function branchItem(other: Partial<IBranchItem> = {}): IBranchItem {
  return {
    branch: 'r.1',
    name: 'main',
    status: 'completed',
    executions: 1,
    started: 1,
    ended: 2,
    head: 1,
    origin: null,
    fork: null,
    set: {},
    reads: [],
    switched: '',
    sample: null,
    undone: null,
    source: '',
    ...other
  };
}
