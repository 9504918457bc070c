/** Fork at a step: a new branch that begins anew there, perhaps with other values of what the cell reads. */
import * as React from 'react';
import type { IStepRow } from '../shapes';
import type { Store } from '../store';
import { SmallForm } from './form';
import { Said, useSaid } from './said';
import { Button, useWords } from './words';

interface IForkProps {
  store: Store;
  row: IStepRow;
}

interface IPair {
  name: string;
  text: string;
}

export function Fork({ store, row }: IForkProps): JSX.Element {
  const words = useWords();
  const id = React.useId();
  const { said, refused, busy, send } = useSaid();
  const reads = store.branchItem?.reads ?? [];
  const [pairs, setPairs] = React.useState<readonly IPair[]>([{ name: '', text: '' }]);
  const change = (i: number, part: Partial<IPair>): void =>
    setPairs(pairs.map((pair, j) => (j === i ? { ...pair, ...part } : pair)));
  const { run, shown } = store;
  const fork = (): void => {
    const texts = Object.fromEntries(
      pairs.map(({ name, text }) => [name.trim(), text]).filter(([name, text]) => name || text)
    );
    send(
      () => store.api?.fork({ run, step: row.number, branch: shown, set: {}, texts }),
      done => store.forked(run, done.branch)
    );
  };
  return (
    <div className="jp-Durable-deed">
      <p>
        {words.__(
          'A new branch begins anew at %1: this step and what follows is executed when the cell runs next, and what is before it is kept. This branch stays as it is.',
          row.label
        )}
      </p>
      <SmallForm
        label={words.__('Fork at %1', row.label)}
        submit={words.__('Fork')}
        busy={busy}
        onSubmit={fork}
        onLeave={() => store.openForm(null)}
      >
        {reads.length > 0 ? (
          <>
            {pairs.map((pair, i) => (
              <div
                key={i}
                className="jp-Durable-pair"
                role="group"
                aria-label={words.__('Variable %1', i + 1)}
              >
                <label>
                  {words.__('Variable')}
                  <input
                    type="text"
                    list={`${id}-reads`}
                    autoComplete="off"
                    spellCheck={false}
                    value={pair.name}
                    onChange={event => change(i, { name: event.target.value })}
                  />
                </label>
                <label>
                  {words.__('Value on the new branch')}
                  <input
                    type="text"
                    autoComplete="off"
                    spellCheck={false}
                    placeholder={words.__('"warm", 3, [1, 2]')}
                    value={pair.text}
                    aria-describedby={`${id}-how`}
                    onChange={event => change(i, { text: event.target.value })}
                  />
                </label>
              </div>
            ))}
            <datalist id={`${id}-reads`}>
              {reads.map(name => (
                <option key={name} value={name} />
              ))}
            </datalist>
            <p id={`${id}-how`} className="jp-Durable-note">
              {words.__(
                'May be left out. The cell reads: %1. A value is JSON or a Python literal; a text has quotes around it.',
                reads.join(', ')
              )}
            </p>
            {pairs.length < reads.length && (
              <Button onClick={() => setPairs([...pairs, { name: '', text: '' }])}>
                {words.__('Another variable')}
              </Button>
            )}
          </>
        ) : (
          <p className="jp-Durable-note">
            {words.__('The cell reads no variable of the notebook that could be set.')}
          </p>
        )}
      </SmallForm>
      <Said said={said} refused={refused} />
    </div>
  );
}
