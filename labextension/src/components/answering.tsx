/** One wait: what it is about, and the buttons or the form by which it is answered. */
import * as React from 'react';
import type { IActions } from '../actions';
import type { Api } from '../api';
import { moment } from '../format';
import { filled, formOf, type IField } from '../schemaForm';
import type { IOutputView, IWaitItem } from '../shapes';
import type { Store } from '../store';
import { isOver, now, untilText, waitState, waitTitle } from '../waits';
import { Picture, PICTURES, Pre, cellText } from './values';
import { Button, State, useWords } from './words';

/** The answers that are sent from one place, and what the log says to the last one. */
export interface IAnswers {
  /** Request that was answered; empty: none yet. */
  request: string;
  said: string;
  refused: boolean;
  send: (wait: IWaitItem, value: unknown) => void;
  forget: () => void;
}

const NOTHING = { request: '', said: '', refused: false };

export function useAnswers(store: Pick<Store, 'refresh'> & { api: Api | null }): IAnswers {
  const [state, set] = React.useState(NOTHING);
  const busy = React.useRef(false);
  const send = (wait: IWaitItem, value: unknown): void => {
    const { run, request } = wait;
    const asked = busy.current ? undefined : store.api?.answer({ run, request, value });
    if (!asked) {
      return;
    }
    busy.current = true;
    set(NOTHING);
    asked
      .then(
        done => set({ request, said: done.message, refused: false }),
        reason =>
          set({ request, said: reason instanceof Error ? reason.message : String(reason), refused: true })
      )
      .finally(() => {
        busy.current = false;
        // Refused, too: perhaps somebody else was first.
        void store.refresh();
      });
  };
  return { ...state, send, forget: () => set(NOTHING) };
}

/** Now, once a second while there is something to count down. */
export function useNow(counts: boolean): number {
  const [at, set] = React.useState(now);
  React.useEffect(() => {
    if (!counts) {
      return undefined;
    }
    const timer = setInterval(() => set(now()), 1000);
    return () => clearInterval(timer);
  }, [counts]);
  return at;
}

interface IWaitProps {
  store: Store;
  actions: IActions;
  wait: IWaitItem;
  answers: IAnswers;
  at: number;
  /** Whether its notebook is the one in front. */
  here: boolean;
  /** Whether a form stands open at once. */
  open: boolean;
}

/** What is asked, and what can be said to it. */
export function Wait({ store, actions, wait, answers, at, here, open }: IWaitProps): JSX.Element {
  const words = useWords();
  const id = React.useId();
  const until = untilText(wait, at, words);
  const done = wait.answered !== null || isOver(wait, at);
  const run = store.runs?.runs.find(each => each.run === wait.run);
  const goesOn = done || (run !== undefined && store.canGoOn(run));
  const mine = answers.request === wait.request;
  return (
    <>
      <div className="jp-Durable-facts">
        <State state={waitState(wait, at, words)} />
        {until && <span>{until}</span>}
      </div>
      <Shown shown={wait.shown} />
      {wait.answered && (
        <p>
          {words.__(
            'Answered by %1 (%2), %3.',
            wait.answered.by,
            wait.answered.via,
            moment(wait.answered.at)
          )}
        </p>
      )}
      {!done && wait.kind !== 'timer' && (
        <Ask
          key={wait.request}
          wait={wait}
          open={open}
          problem={mine && answers.refused ? `${id}-said` : ''}
          send={value => answers.send(wait, value)}
        />
      )}
      {mine && answers.refused && (
        <p id={`${id}-said`} role="alert" className="jp-Durable-error">
          {answers.said}
        </p>
      )}
      {wait.running ? (
        <p className="jp-Durable-note">{words.__('Its cell waits in a kernel, and goes on at once.')}</p>
      ) : goesOn && here && actions.resume ? (
        <div className="jp-Durable-buttons">
          <Button
            accept
            label={words.__('Resume %1', wait.run_name)}
            onClick={() => actions.resume?.(wait.run)}
          >
            {words.__('Resume')}
          </Button>
        </div>
      ) : goesOn ? (
        <p className="jp-Durable-note">{words.__('Run its cell again to go on.')}</p>
      ) : null}
    </>
  );
}

/** What was shown with a question: pictures of pixels, else text. Markdown and HTML are a stranger's. */
export function Shown({ shown }: { shown: readonly IOutputView[] }): JSX.Element {
  const words = useWords();
  const label = words.__('What was shown');
  return (
    <>
      {shown.map((output, i) => {
        const media = PICTURES.find(type => typeof output.data[type] === 'string');
        const markdown = output.data['text/markdown'];
        return media ? (
          <Picture key={i} media={media} data={String(output.data[media])} alt={label} />
        ) : typeof markdown === 'string' ? (
          <div
            key={i}
            className="jp-Durable-shown jp-Durable-text"
            tabIndex={0}
            role="group"
            aria-label={label}
          >
            {markdown}
          </div>
        ) : (
          <div key={i} className="jp-Durable-shown">
            <Pre text={output.text || cellText(output.data['text/plain'])} label={label} role="group" />
          </div>
        );
      })}
    </>
  );
}

interface IAskProps {
  wait: IWaitItem;
  open: boolean;
  /** Id of the sentence that refused the last answer; empty: none did. */
  problem: string;
  send: (value: unknown) => void;
}

/** The buttons or the form by which an open wait is answered. */
export function Ask({ wait, open, problem, send }: IAskProps): JSX.Element {
  const words = useWords();
  const [form, setForm] = React.useState(open);
  const buttons = (children: React.ReactNode): JSX.Element => (
    <div className="jp-Durable-buttons" role="group" aria-label={waitTitle(wait, words)}>
      {children}
    </div>
  );
  if (wait.choices.length > 0) {
    return buttons(
      wait.choices.map(choice => (
        <Button key={choice} onClick={() => send(choice)}>
          {choice}
        </Button>
      ))
    );
  }
  if (wait.kind === 'approval' && isYesOrNo(wait.schema)) {
    return buttons(
      <>
        <Button accept onClick={() => send(true)}>
          {words.__('Yes')}
        </Button>
        <Button onClick={() => send(false)}>{words.__('No')}</Button>
      </>
    );
  }
  return (
    <>
      {!open && (
        <Button
          expanded={form}
          label={words.__('Answer %1', waitTitle(wait, words))}
          onClick={() => setForm(!form)}
        >
          {words.__('Answer …')}
        </Button>
      )}
      {(form || open) && <SchemaForm wait={wait} problem={problem} focused={!open} send={send} />}
    </>
  );
}

function isYesOrNo(schema: unknown): boolean {
  return (
    schema === null ||
    (typeof schema === 'object' && 'type' in schema && (schema as { type: unknown }).type === 'boolean')
  );
}

function SchemaForm({
  wait,
  problem,
  focused,
  send
}: Omit<IAskProps, 'open'> & { focused: boolean }): JSX.Element {
  const words = useWords();
  const id = React.useId();
  const form = React.useMemo(() => formOf(wait.schema), [wait.request]);
  const [texts, setTexts] = React.useState(() => form.fields.map(each => each.initial));
  const [problems, setProblems] = React.useState<ReadonlyMap<number, string>>(new Map());
  const box = React.useRef<HTMLFormElement>(null);
  const focus = (i: number): void => box.current?.querySelector<HTMLElement>(`[data-field="${i}"]`)?.focus();
  React.useEffect(() => {
    if (focused) {
      focus(0);
    }
  }, []);
  const submit = (): void => {
    const read = filled(form, texts, words);
    if ('value' in read) {
      setProblems(new Map());
      send(read.value);
    } else {
      setProblems(read.problems);
      focus(Math.min(...read.problems.keys()));
    }
  };
  const change = (i: number, text: string): void => {
    setTexts(texts.map((each, j) => (j === i ? text : each)));
    setProblems(new Map([...problems].filter(([j]) => j !== i)));
  };
  return (
    <form
      ref={box}
      className="jp-Durable-form"
      aria-label={waitTitle(wait, words)}
      noValidate
      onSubmit={event => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={event => {
        event.stopPropagation();
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          submit();
        }
      }}
      data-lm-suppress-shortcuts="true"
    >
      {form.fields.map((each, i) => (
        <Field
          key={i}
          id={`${id}-${i}`}
          place={i}
          field={each}
          text={texts[i] ?? ''}
          problem={problems.get(i) ?? ''}
          refused={problem}
          onChange={text => change(i, text)}
        />
      ))}
      <button type="submit" className="jp-Durable-button jp-mod-styled jp-mod-accept">
        {words.__('Send')}
      </button>
    </form>
  );
}

interface IFieldProps {
  id: string;
  place: number;
  field: IField;
  text: string;
  problem: string;
  refused: string;
  onChange: (text: string) => void;
}

function Field({ id, place, field, text, problem, refused, onChange }: IFieldProps): JSX.Element {
  const words = useWords();
  const title = field.title || (field.kind === 'json' ? words.__('Value (JSON)') : words.__('Value'));
  const described = [field.description && `${id}-about`, problem && `${id}-problem`, refused].filter(Boolean);
  const common = {
    id,
    'data-field': place,
    value: text,
    'aria-required': field.required,
    'aria-invalid': problem !== '' || refused !== '',
    'aria-describedby': described.join(' ') || undefined,
    onChange: (event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>): void =>
      onChange(event.target.value)
  };
  return (
    <>
      <label htmlFor={id}>{field.required ? title : words.__('%1 (may be left out)', title)}</label>
      {field.kind === 'json' ? (
        <textarea {...common} rows={3} spellCheck={false} />
      ) : field.kind === 'enum' || field.kind === 'boolean' ? (
        <select {...common}>
          <option value="">{words.__('–')}</option>
          {field.kind === 'boolean' ? (
            <>
              <option value="true">{words.__('yes')}</option>
              <option value="false">{words.__('no')}</option>
            </>
          ) : (
            field.options.map((option, i) => (
              <option key={i} value={i}>
                {typeof option === 'string' ? option : JSON.stringify(option)}
              </option>
            ))
          )}
        </select>
      ) : (
        <input
          {...common}
          type="text"
          inputMode={field.kind === 'text' ? 'text' : 'decimal'}
          autoComplete="off"
        />
      )}
      {field.description && (
        <p id={`${id}-about`} className="jp-Durable-note">
          {field.description}
        </p>
      )}
      {problem && (
        <p id={`${id}-problem`} role="alert" className="jp-Durable-error">
          {problem}
        </p>
      )}
    </>
  );
}
