/** What model calls cost: bars for the eye, the same numbers as a table for everybody. */
import * as React from 'react';
import { count, money } from '../format';
import type { By, IAmount } from '../shapes';
import type { Store } from '../store';
import { Face, useAnswer, useWords } from './words';

const KINDS = ['billed', 'wasted', 'replayed'] as const;

export function SpendView({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const [by, setBy] = React.useState<By>('model');
  const [all, setAll] = React.useState(false);
  const { api, run } = store;
  const key = [api?.notebook, run, by, all, store.history.version].join('/');
  const { answer, problem } = useAnswer(api ? () => api.spend(by, all ? undefined : run) : null, key);
  const groups: [By, string][] = [
    ['model', words.__('model')],
    ['day', words.__('day')],
    ['run', words.__('run')],
    ['branch', words.__('branch')],
    ['cell', words.__('cell')],
    ['step', words.__('step')]
  ];
  const names = {
    billed: words.__('Billed'),
    wasted: words.__('Wasted'),
    replayed: words.__('Saved by replay')
  };
  const lines = answer?.lines ?? [];
  // Where no price is known, tokens are what one can compare.
  const priced = lines.some(line => KINDS.some(kind => line[kind].cost > 0));
  const size = (amount: IAmount): number => (priced ? amount.cost : amount.tokens);
  const longest = Math.max(
    1e-12,
    ...lines.map(line => KINDS.reduce((sum, kind) => sum + size(line[kind]), 0))
  );
  return (
    <div className="jp-Durable-spend">
      <div className="jp-Durable-toolbar">
        <label>
          {words.__('By')}{' '}
          <select value={by} onChange={event => setBy(event.target.value as By)}>
            {groups.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          <input type="checkbox" checked={all} onChange={event => setAll(event.target.checked)} />
          {words.__('all runs of the log')}
        </label>
      </div>
      {problem && <div className="jp-Durable-error">{problem}</div>}
      {answer && lines.length === 0 && <Face title={words.__('No model call is recorded.')} />}
      {lines.length > 0 && (
        <div className="jp-Durable-tableBox" tabIndex={0} role="region" aria-label={words.__('Bill')}>
          <table className="jp-Durable-table jp-mod-spend">
            <thead>
              <tr>
                <th scope="col">{groups.find(([value]) => value === answer?.by)?.[1] ?? ''}</th>
                {KINDS.map(kind => (
                  <th key={kind} scope="col">
                    <span aria-hidden="true" className={`jp-Durable-key jp-mod-${kind}`} /> {names[kind]}
                  </th>
                ))}
                <th scope="col">{priced ? words.__('Money') : words.__('Tokens')}</th>
              </tr>
            </thead>
            <tbody>
              {lines.map(line => (
                <tr key={line.what}>
                  <th scope="row">{line.what}</th>
                  {KINDS.map(kind => (
                    <td key={kind} title={line[kind].text}>
                      {amountText(line[kind], words)}
                    </td>
                  ))}
                  <td className="jp-Durable-barCell">
                    <div aria-hidden="true" className="jp-Durable-stack">
                      {KINDS.map(kind => (
                        <span
                          key={kind}
                          className={`jp-mod-${kind}`}
                          style={{ width: `${(100 * size(line[kind])) / longest}%` }}
                        />
                      ))}
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function amountText(amount: IAmount, words: ReturnType<typeof useWords>): string {
  if (amount.calls === 0) {
    return '–';
  }
  const calls = words._n('%1 call', '%1 calls', amount.calls);
  const cost = amount.unpriced + amount.unknown < amount.calls ? [money(amount.cost)] : [];
  return [...cost, words.__('%1 tok', count(amount.tokens)), calls].join(' · ');
}
