/** Two branches of a run side by side: which steps are the same, what differs, what each cost. */
import * as React from 'react';
import { duration, spentText, stepState, usageText } from '../format';
import type { IBranchItem, IDiff, IDiffRow, IStepRow, ITotals } from '../shapes';
import type { Store } from '../store';
import { Button, Face, State, useAnswer, useWords } from './words';

export function CompareView({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const branches = store.detail?.branches ?? [];
  const shown = store.branchItem;
  const ran = branches.find(each => each.branch === store.item?.branch);
  // One that was made from another is compared with that one.
  const newest = (shown?.origin ? shown : ran) ?? branches[branches.length - 1];
  const [a, setA] = React.useState('');
  const [b, setB] = React.useState('');
  const [changed, setChanged] = React.useState(false);
  const [rows, setRows] = React.useState<IDiffRow[]>([]);
  const [next, setNext] = React.useState<number | null>(null);
  const right = branches.some(each => each.branch === b) ? b : (newest?.branch ?? '');
  const origin = branches.find(each => each.branch === right)?.origin?.branch;
  const before = branches.filter(each => each.branch !== right);
  const left = before.some(each => each.branch === a)
    ? a
    : (origin ?? before[before.length - 1]?.branch ?? '');
  const heads = branches.map(each => each.head).join(',');
  const { api, run } = store;
  const ask = api && left && right ? () => api.diff(run, left, right, undefined, changed) : null;
  const { answer, problem } = useAnswer<IDiff>(ask, [run, left, right, changed, heads].join('/'));
  React.useEffect(() => {
    setRows(answer?.rows ?? []);
    setNext(answer?.next ?? null);
  }, [answer]);
  if (branches.length < 2) {
    return (
      <Face title={words.__('There is one branch only')}>
        <p>
          {words.__(
            'A fork, an edit of the cell, or a run with --fresh makes a second one to compare it with.'
          )}
        </p>
      </Face>
    );
  }
  const more = async (): Promise<void> => {
    if (api && next !== null) {
      const page = await api.diff(run, left, right, next, changed);
      setRows(known => [...known, ...page.rows]);
      setNext(page.next);
    }
  };
  return (
    <div className="jp-Durable-compare">
      <div className="jp-Durable-toolbar">
        <Choose label={words.__('Before')} branches={branches} value={left} onChange={setA} />
        <Choose label={words.__('After')} branches={branches} value={right} onChange={setB} />
        <label>
          <input type="checkbox" checked={changed} onChange={event => setChanged(event.target.checked)} />
          {words.__('differences only')}
        </label>
      </div>
      {problem && <div className="jp-Durable-error">{problem}</div>}
      {answer && (
        <>
          <p role="status">
            {Object.entries(answer.counts)
              .map(([verdict, number]) => `${number} ${verdictWord(verdict as IDiffRow['verdict'], words)}`)
              .join(', ')}
          </p>
          <div
            className="jp-Durable-tableBox"
            tabIndex={0}
            role="region"
            aria-label={words.__('Steps side by side')}
          >
            <table className="jp-Durable-table jp-mod-compare">
              <thead>
                <tr>
                  <th scope="col">{words.__('Verdict')}</th>
                  <th scope="col">
                    {answer.a.name} · <Cost totals={answer.totals_a} />
                  </th>
                  <th scope="col">
                    {answer.b.name} · <Cost totals={answer.totals_b} />
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map(row => (
                  <tr
                    key={`${row.a?.number ?? ''}/${row.b?.number ?? ''}`}
                    className={`jp-mod-${row.verdict}`}
                  >
                    <td>{verdictWord(row.verdict, words)}</td>
                    <Side row={row.a} />
                    <Side row={row.b} />
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {next !== null && <Button onClick={() => void more()}>{words.__('More rows')}</Button>}
          <Source a={answer.a} b={answer.b} />
        </>
      )}
    </div>
  );
}

function Choose(props: {
  label: string;
  branches: readonly IBranchItem[];
  value: string;
  onChange: (branch: string) => void;
}): JSX.Element {
  return (
    <label>
      {props.label}{' '}
      <select value={props.value} onChange={event => props.onChange(event.target.value)}>
        {props.branches.map(branch => (
          <option key={branch.branch} value={branch.branch}>
            {branch.name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Cost({ totals }: { totals: ITotals }): JSX.Element {
  const words = useWords();
  return (
    <>
      {words._n('%1 step', '%1 steps', totals.steps)}
      {totals.calls > 0 && ` · ${words.__('%1 spent', spentText(totals, words))}`}
    </>
  );
}

function Side({ row }: { row: IStepRow | null }): JSX.Element {
  const words = useWords();
  if (!row) {
    return <td className="jp-mod-none">–</td>;
  }
  return (
    <td>
      {row.label} <State state={stepState(row.status, 'recorded', words, row.kind)} />{' '}
      <span className="jp-Durable-note">
        {[duration(row.seconds), usageText(row, words)].filter(Boolean).join(' · ')}
      </span>
    </td>
  );
}

function Source({ a, b }: { a: IBranchItem; b: IBranchItem }): JSX.Element {
  const words = useWords();
  return (
    <details>
      <summary>
        {a.source === b.source ? words.__('The cell (not changed)') : words.__('The cell (changed)')}
      </summary>
      <div className="jp-Durable-sides">
        {[a, b].map(branch => (
          <pre
            key={branch.branch}
            className="jp-Durable-pre"
            tabIndex={0}
            role="region"
            aria-label={branch.name}
          >
            {branch.source}
          </pre>
        ))}
      </div>
    </details>
  );
}

function verdictWord(verdict: IDiffRow['verdict'], words: ReturnType<typeof useWords>): string {
  switch (verdict) {
    case 'equal':
      return words.__('equal');
    case 'value':
      return words.__('other value');
    case 'status':
      return words.__('other end');
    case 'arguments':
      return words.__('other arguments');
    case 'only_a':
      return words.__('only before');
    default:
      return words.__('only after');
  }
}
