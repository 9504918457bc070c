/**
 * The shapes of everything that goes over REST. Written by `python tests/browser/shapes_ts.py` from
 * `jupyter_durable/server/shapes/`, which says what each field means; not to be edited by hand.
 */

export interface IAmount {
  calls: number;
  unknown: number;
  tokens: number;
  cost: number;
  unpriced: number;
  text: string;
}

export type By = 'run' | 'notebook' | 'cell' | 'branch' | 'step' | 'day' | 'model' | 'all';

export interface IBillLine {
  what: string;
  billed: IAmount;
  wasted: IAmount;
  replayed: IAmount;
}

export interface IBill {
  format: number;
  log: string;
  by: By;
  run: string;
  lines: IBillLine[];
}

export interface IDiffRow {
  a: IStepRow | null;
  b: IStepRow | null;
  verdict: 'equal' | 'value' | 'status' | 'arguments' | 'only_a' | 'only_b';
}

export interface IDiff {
  format: number;
  log: string;
  run: string;
  a: IBranchItem;
  b: IBranchItem;
  rows: IDiffRow[];
  next: number | null;
  counts: Record<string, number>;
  totals_a: ITotals;
  totals_b: ITotals;
  untrusted: string;
}

export interface ISqlQuestion {
  query: string;
  limit: number;
}

export interface ISqlAnswer {
  format: number;
  log: string;
  columns: string[];
  types: string[];
  rows: unknown[][];
  cut: boolean;
  partial: boolean;
  seconds: number;
}

export interface IDecideQuestion {
  run: string;
  reuse: 'all' | 'pure' | 'none';
  steps: string[];
}

export interface ISettleQuestion {
  run: string;
  step: number;
  choice: 'rerun' | 'value' | 'salvage' | 'fail';
  value: unknown;
  json: string | null;
  branch: string;
}

export interface IForkQuestion {
  run: string;
  step: number;
  branch: string;
  set: Record<string, unknown>;
  texts: Record<string, string>;
}

export interface ISwitchQuestion {
  run: string;
  branch: string;
}

export interface ICancelQuestion {
  run: string;
  child: string;
  reason: string;
}

export interface IResumeQuestion {
  run: string;
}

export interface IDone {
  format: number;
  log: string;
  run: string;
  branch: string;
  branch_name: string;
  by: string;
  message: string;
}

export type RunStatus = 'running' | 'completed' | 'failed' | 'interrupted' | 'stopped' | 'decided' | 'parked' | 'cancelled' | 'undone' | 'continued';

export type StepStatus = 'running' | 'waiting' | 'in_doubt' | 'interrupted' | 'completed' | 'failed' | 'cancelled' | 'not_stored' | 'adopted';

export interface IProblem {
  format: number;
  message: string;
  reason: string;
  error: string;
  facts: Record<string, string | number | boolean | null>;
}

export interface IFailure {
  type: string;
  message: string;
}

export interface ITotals {
  steps: number;
  by_status: Record<string, number>;
  calls: number;
  tokens: number;
  cost: number;
  unpriced: number;
  unknown: number;
  replayed_calls: number;
  replayed_tokens: number;
  replayed_cost: number;
}

export interface IUsageItem {
  provider: string;
  model: string;
  input: number | null;
  output: number | null;
  cached: number | null;
  cache_write: number | null;
  reasoning: number | null;
  cost: number | null;
}

export interface INoticeItem {
  kind: string;
  message: string;
  names: string[];
}

export interface IValueView {
  type: string;
  codec: string;
  size: number;
  json: unknown;
  text: string;
  cut: boolean;
  table: ITableView | null;
}

export interface ITableView {
  columns: string[];
  types: string[];
  rows: unknown[][];
  total: number;
}

export interface IErrorView {
  type: string;
  message: string;
  traceback: string;
}

export interface IAttemptView {
  number: number;
  seq: number;
  execution: string;
  started: number;
  ended: number | null;
  status: 'running' | 'in_doubt' | 'completed' | 'failed' | 'cancelled' | 'interrupted' | 'not_stored';
  error: IErrorView | null;
  retry_in: number;
  usage: IUsageItem | null;
}

export interface IOutputView {
  kind: 'stdout' | 'stderr' | 'display';
  text: string;
  data: Record<string, unknown>;
}

export interface IPart {
  kind: 'text' | 'thinking' | 'image' | 'file' | 'tool_call' | 'tool_result' | 'other';
  text: string;
  name: string;
  id: string;
  media: string;
  data: string;
}

export interface IMessage {
  role: string;
  parts: IPart[];
}

export interface IModelCall {
  provider: string;
  api: string;
  model: string;
  method: string;
  url: string;
  stream: boolean;
  line: number;
  messages: IMessage[];
  tools: string[];
  options: Record<string, unknown>;
  reply: IMessage[];
  stop: string;
  request: unknown;
  answer: unknown;
  status: number | null;
  complete: boolean;
  broken: IFailure | null;
  note: string;
}

export interface INotStored {
  path: string;
  type: string;
  reason: string;
  salvage: IValueView | null;
}

export interface ISettled {
  choice: 'rerun' | 'value' | 'fail';
  by: string;
}

export interface IAdoptedFrom {
  execution: string;
  seq: number;
  branch_name: string;
}

export interface IAnswerItem {
  by: string;
  via: string;
  at: number;
}

export interface IWaitPart {
  request: string;
  question: string;
  choices: string[];
  schema: unknown;
  shown: IOutputView[];
  until: number | null;
  receipt: IAnswerItem | null;
}

export interface ICompensationItem {
  name: string;
  undone: boolean;
  by: string;
  at: number | null;
}

export interface IStepDetail {
  format: number;
  log: string;
  run: string;
  branch: string;
  branch_name: string;
  row: IStepRow;
  digest: string;
  evidence: string;
  pure: boolean;
  value: IValueView | null;
  error: IErrorView | null;
  not_stored: INotStored | null;
  settled: ISettled | null;
  adopted_from: IAdoptedFrom | null;
  attempts: IAttemptView[];
  outputs: IOutputView[];
  notices: INoticeItem[];
  call: IModelCall | null;
  wait: IWaitPart | null;
  compensation: ICompensationItem | null;
  note: string;
}

export interface IAbout {
  format: number;
  version: string;
  notebook: string;
  log: string;
  exists: boolean;
  configured: boolean;
  elsewhere: boolean;
  user: string;
  hints: string;
}

export interface IHint {
  log: string;
  run: string;
  branch: string;
  seq: number;
  status: RunStatus;
}

export interface IWaitingStep {
  number: number;
  name: string;
  label: string;
}

export interface IWaiting {
  kind: 'settle' | 'decide' | 'resume' | 'read' | 'answer' | 'timer' | 'cancelled';
  branch: string;
  branch_name: string;
  steps: IWaitingStep[];
  message: string;
  since: number;
}

export interface IRunItem {
  run: string;
  name: string;
  status: RunStatus;
  branch: string;
  branch_name: string;
  next: string;
  branches: number;
  executions: number;
  replayed: number | null;
  live: number | null;
  started: number;
  ended: number | null;
  head: number;
  notebook: string;
  here: boolean;
  cell: string;
  error: IFailure | null;
  waits: IWaiting | null;
}

export interface IRuns {
  format: number;
  log: string;
  exists: boolean;
  runs: IRunItem[];
  unreadable: string[];
}

export interface IOriginItem {
  branch: string;
  name: string;
  seq: number;
}

export interface IForkItem {
  number: number;
  label: string;
  by: string;
}

export interface ISampleItem {
  number: number;
  of: number;
  first: string;
  value: string;
}

export interface IUndoneItem {
  by: string;
  at: number;
  finished: boolean;
}

export interface IBranchItem {
  branch: string;
  name: string;
  status: RunStatus;
  executions: number;
  started: number;
  ended: number | null;
  head: number;
  origin: IOriginItem | null;
  fork: IForkItem | null;
  set: Record<string, string>;
  reads: string[];
  switched: string;
  sample: ISampleItem | null;
  undone: IUndoneItem | null;
  source: string;
}

export interface IExecutionItem {
  execution: string;
  branch: string;
  branch_name: string;
  purpose: 'run' | 'decide';
  status: RunStatus;
  started: number;
  ended: number | null;
  replayed: number | null;
  live: number | null;
  pid: number;
  host: string;
  python: string;
  flags: Record<string, string>;
  cell: string;
  durability: 'power' | 'process';
  error: IFailure | null;
  torn: number;
  folded: boolean;
}

export interface IRunDetail {
  format: number;
  log: string;
  run: IRunItem;
  branches: IBranchItem[];
  executions: IExecutionItem[];
}

export interface IProgressItem {
  done: number;
  total: number | null;
  text: string;
}

export interface IStepRow {
  number: number;
  changed: number;
  name: string;
  label: string;
  kind: string;
  status: StepStatus;
  scope: string;
  parent: number | null;
  cell: string;
  line: number;
  execution: string;
  started: number;
  ended: number | null;
  seconds: number | null;
  attempts: number;
  why: string;
  error: IFailure | null;
  usage: IUsageItem | null;
  saved: IUsageItem | null;
  outputs: number;
  notices: number;
  progress: IProgressItem | null;
  beat: number | null;
  missed: string;
}

export interface IPage {
  format: number;
  log: string;
  run: string;
  branch: string;
  branch_name: string;
  rows: IStepRow[];
  next: number;
  epoch: string;
  reset: boolean;
  more: boolean;
  head: number;
  running: string;
  newest: string;
  newest_status: RunStatus;
  progress: IProgressItem | null;
  totals: ITotals;
  notices: INoticeItem[];
  untrusted: string;
  damaged: string;
}

export interface IWaitItem {
  run: string;
  run_name: string;
  branch: string;
  branch_name: string;
  number: number;
  request: string;
  kind: 'timer' | 'signal' | 'approval';
  signal: string;
  child: string;
  question: string;
  choices: string[];
  schema: unknown;
  shown: IOutputView[];
  until: number | null;
  running: boolean;
  cell: string;
  notebook: string;
  answered: IAnswerItem | null;
}

export interface IKeptItem {
  run: string;
  run_name: string;
  branch: string;
  branch_name: string;
  signal: string;
  id: string;
  by: string;
  via: string;
  at: number;
}

export interface IWaits {
  format: number;
  log: string;
  waits: IWaitItem[];
  kept: IKeptItem[];
}

export interface IAnswerQuestion {
  run: string;
  request: string;
  value: unknown;
}

export interface ISignalQuestion {
  run: string;
  name: string;
  value: unknown;
  json: string | null;
  id: string;
  branch: string;
}
