/** What only a person can say: what happened to a step, and what becomes of steps after an edit. */
import * as React from 'react';
import type { IActions } from '../actions';
import { jsonProblem } from '../jsonText';
import type { IRunItem, IStepRow, StepStatus } from '../shapes';
import type { Store } from '../store';
import { Said, useSaid } from './said';
import { Button, useWords } from './words';

/** What was said is acted on by the next execution; after that it is old. */
const isActedOn = (status: string): boolean => status === 'running' || status === 'completed';

interface ISettleProps {
  store: Store;
  actions: IActions;
  row: IStepRow;
  status: StepStatus;
  /** A plainer form of its value was saved. */
  salvage: boolean;
}

/** The end of a step is not known, or its value was not stored: a person says what happened. */
export function Settle({ store, actions, row, status, salvage }: ISettleProps): JSX.Element | null {
  const words = useWords();
  const { said, refused, busy, send } = useSaid(isActedOn(store.item?.status ?? ''));
  const [form, setForm] = React.useState(false);
  const open = status === 'in_doubt' || status === 'not_stored';
  const waits = store.item?.waits;
  const stops =
    waits?.kind === 'settle' &&
    waits.branch === store.shown &&
    waits.steps.some(step => step.number === row.number);
  const settle = (choice: 'rerun' | 'fail' | 'salvage' | 'value', json: string | null = null): void => {
    const { run, shown: branch } = store;
    send(
      () => store.api?.settle({ run, step: row.number, choice, value: null, json, branch }),
      () => void store.refresh()
    );
  };
  if (!open && !said) {
    return null;
  }
  return (
    <div className="jp-Durable-settle">
      {open && (
        <>
          <p>
            {stops && <strong>{words.__('The run waits for you.')} </strong>}
            {status === 'in_doubt'
              ? words.__(
                  'Nobody knows how it ended. If its effect must not happen twice, look before you decide.'
                )
              : words.__('It happened, and its value could not be stored.')}
          </p>
          <div className="jp-Durable-buttons">
            <Button disabled={busy} onClick={() => settle('rerun')}>
              {words.__('Run it again')}
            </Button>
            {row.kind !== 'model' && (
              <Button disabled={busy} expanded={form} onClick={() => setForm(!form)}>
                {words.__('It happened, with this value …')}
              </Button>
            )}
            {salvage && (
              <Button disabled={busy} onClick={() => settle('salvage')}>
                {words.__('Use what was saved')}
              </Button>
            )}
            <Button disabled={busy} onClick={() => settle('fail')}>
              {words.__('It failed')}
            </Button>
          </div>
          {row.kind === 'model' && (
            <p className="jp-Durable-note">
              {words.__(
                'The answer of a model cannot be given by hand: run it again, or count it as failed.'
              )}
            </p>
          )}
          {form && (
            <ValueForm busy={busy} onSend={json => settle('value', json)} onLeave={() => setForm(false)} />
          )}
        </>
      )}
      <Said said={said} refused={refused} onResume={actions.resume && (() => actions.resume?.(store.run))} />
    </div>
  );
}

type Kind = 'json' | 'text';

/** A value by hand. It is looked at before it is sent, so that a comma too much costs nobody a decision. */
function ValueForm({
  busy,
  onSend,
  onLeave
}: {
  busy: boolean;
  /** As JSON text: a number of many digits does not survive being one of JavaScript's. */
  onSend: (json: string) => void;
  onLeave: () => void;
}): JSX.Element {
  const words = useWords();
  const id = React.useId();
  const [kind, setKind] = React.useState<Kind>('json');
  const [text, setText] = React.useState('');
  const [problem, setProblem] = React.useState('');
  const field = React.useRef<HTMLTextAreaElement>(null);
  React.useEffect(() => field.current?.focus(), []);
  const submit = (): void => {
    if (kind === 'text') {
      onSend(JSON.stringify(text));
      return;
    }
    const found = jsonProblem(text, words);
    setProblem(found);
    if (found) {
      field.current?.focus();
    } else {
      onSend(text);
    }
  };
  return (
    <form
      className="jp-Durable-form"
      onSubmit={event => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={event => {
        event.stopPropagation();
        if (event.key === 'Escape') {
          onLeave();
        } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          submit();
        }
      }}
      data-lm-suppress-shortcuts="true"
    >
      <label htmlFor={`${id}-kind`}>{words.__('The value is')}</label>
      <select id={`${id}-kind`} value={kind} onChange={event => setKind(event.target.value as Kind)}>
        <option value="json">{words.__('JSON')}</option>
        <option value="text">{words.__('Text')}</option>
      </select>
      <label htmlFor={`${id}-value`}>{words.__('Value of the step')}</label>
      <textarea
        id={`${id}-value`}
        ref={field}
        rows={3}
        spellCheck={false}
        value={text}
        aria-invalid={problem !== ''}
        aria-describedby={problem ? `${id}-problem` : undefined}
        onChange={event => {
          setText(event.target.value);
          setProblem('');
        }}
      />
      {problem && (
        <p id={`${id}-problem`} role="alert" className="jp-Durable-error">
          {problem}
        </p>
      )}
      <div className="jp-Durable-buttons">
        <button type="submit" className="jp-Durable-button jp-mod-styled jp-mod-accept" disabled={busy}>
          {words.__('Settle with this value')}
        </button>
        <Button onClick={onLeave}>{words.__('Cancel')}</Button>
      </div>
    </form>
  );
}

interface IDecideProps {
  store: Store;
  actions: IActions;
  run: IRunItem;
  /** Name of the one step that is meant; empty: all that the run asks about. */
  step?: string;
}

/** After an edit: what becomes of steps that had finished before it. */
export function Decide({ store, actions, run, step = '' }: IDecideProps): JSX.Element | null {
  const words = useWords();
  const { said, refused, busy, send } = useSaid(isActedOn(run.status));
  const waits = run.waits?.kind === 'decide' ? run.waits : null;
  const decide = (reuse: 'all' | 'pure' | 'none', name = step): void => {
    send(
      () => store.api?.decide({ run: run.run, reuse, steps: name ? [name] : [] }),
      () => void store.refresh()
    );
  };
  if (!waits && !said) {
    return null;
  }
  const names = [...new Set(waits?.steps.map(each => each.name))];
  return (
    <div className="jp-Durable-settle">
      {waits && (
        <>
          <p>
            <strong>{words.__('The run waits for you.')}</strong>{' '}
            {step
              ? words.__('The cell was edited after this step, and it may depend on what changed.')
              : words.__(
                  'The cell was edited. These steps were begun before that, and may depend on what changed: %1.',
                  waits.steps.map(each => each.label).join(', ')
                )}
          </p>
          <div className="jp-Durable-buttons">
            <Button disabled={busy} onClick={() => decide('all')}>
              {step ? words.__('Use its recorded result') : words.__('Use the recorded results')}
            </Button>
            <Button disabled={busy} onClick={() => decide('none')}>
              {step ? words.__('Run it again') : words.__('Run them again')}
            </Button>
            {!step && (
              <Button disabled={busy} onClick={() => decide('pure')}>
                {words.__('Use those of pure steps only')}
              </Button>
            )}
          </div>
          {!step && names.length > 1 && (
            <p className="jp-Durable-note">
              {words.__('For a step of its own, choose it below the branch that it is of.')}
            </p>
          )}
          <details>
            <summary>{words.__('What the run said')}</summary>
            <p>{waits.message}</p>
          </details>
        </>
      )}
      <Said said={said} refused={refused} onResume={actions.resume && (() => actions.resume?.(run.run))} />
    </div>
  );
}
