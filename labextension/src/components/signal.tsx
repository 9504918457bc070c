/** Send a signal to the run that is shown, also before it waits for one; and what is kept of such signals. */
import * as React from 'react';
import { moment } from '../format';
import { jsonProblem } from '../jsonText';
import type { IKeptItem } from '../shapes';
import type { Store } from '../store';
import { SmallForm } from './form';
import { Said, useSaid } from './said';
import { useWords } from './words';

export function SendSignal({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const id = React.useId();
  const { said, refused, busy, send } = useSaid();
  const { run } = store;
  const branches = store.detail?.branches ?? [];
  const known = [...new Set((store.waits ?? []).filter(wait => wait.run === run).map(wait => wait.signal))];
  const [name, setName] = React.useState('');
  const [text, setText] = React.useState('');
  const [branch, setBranch] = React.useState('');
  const [problem, setProblem] = React.useState({ name: '', text: '' });
  const submit = (): void => {
    const found = {
      name: name.trim() ? '' : words.__('Write the name that the cell waits for: durable.wait_for("NAME").'),
      text: jsonProblem(text, words)
    };
    setProblem(found);
    if (found.name || found.text) {
      return;
    }
    send(
      () => store.api?.signal({ run, name: name.trim(), value: null, json: text, id: '', branch }),
      () => {
        setName('');
        setText('');
        store.sent(run);
      }
    );
  };
  const told = (part: 'name' | 'text'): Record<string, unknown> => ({
    'aria-invalid': problem[part] !== '',
    'aria-describedby': problem[part] ? `${id}-${part}-problem` : undefined
  });
  const Problem = ({ of }: { of: 'name' | 'text' }): JSX.Element | null =>
    problem[of] ? (
      <p id={`${id}-${of}-problem`} role="alert" className="jp-Durable-error">
        {problem[of]}
      </p>
    ) : null;
  return (
    <div className="jp-Durable-deed">
      <SmallForm
        label={words.__('Send a signal to %1', store.item?.name ?? '')}
        submit={words.__('Send')}
        busy={busy}
        onSubmit={submit}
        onLeave={() => store.openForm(null)}
      >
        <label htmlFor={`${id}-name`}>{words.__('Name of the signal')}</label>
        <input
          id={`${id}-name`}
          type="text"
          list={`${id}-known`}
          autoComplete="off"
          spellCheck={false}
          value={name}
          onChange={event => setName(event.target.value)}
          {...told('name')}
        />
        <datalist id={`${id}-known`}>
          {known.filter(Boolean).map(each => (
            <option key={each} value={each} />
          ))}
        </datalist>
        <Problem of="name" />
        <label htmlFor={`${id}-value`}>{words.__('Value (JSON)')}</label>
        <textarea
          id={`${id}-value`}
          rows={2}
          spellCheck={false}
          value={text}
          onChange={event => setText(event.target.value)}
          {...told('text')}
        />
        <Problem of="text" />
        {branches.length > 1 && (
          <>
            <label htmlFor={`${id}-branch`}>{words.__('For branch')}</label>
            <select id={`${id}-branch`} value={branch} onChange={event => setBranch(event.target.value)}>
              <option value="">{words.__('the newest, or the one that was chosen')}</option>
              {branches.map(each => (
                <option key={each.branch} value={each.branch}>
                  {each.name}
                </option>
              ))}
            </select>
          </>
        )}
      </SmallForm>
      <Said said={said} refused={refused} />
    </div>
  );
}

/** Signals that nobody has waited for yet. */
export function Kept({ kept }: { kept: readonly IKeptItem[] }): JSX.Element | null {
  const words = useWords();
  return kept.length === 0 ? null : (
    <>
      <p>{words.__('Sent, and kept until the run waits for it:')}</p>
      <ul aria-label={words.__('Signals that are kept')}>
        {kept.map(each => (
          <li key={`${each.run} ${each.id}`}>
            {words.__('%1 (%2): signal %3', each.run_name, each.branch_name, each.signal)}{' '}
            <span className="jp-Durable-note">
              {words.__('by %1 (%2), %3', each.by, each.via, moment(each.at))}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
