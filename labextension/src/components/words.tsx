/** The translator, for every component below, and small parts that several of them use. */
import * as React from 'react';
import type { IState, IWords } from '../format';

const PLAIN: IWords = {
  __: text => text,
  _n: (one, many, count) => (count === 1 ? one : many)
};

const Words = React.createContext<IWords>(PLAIN);

export const WordsProvider = Words.Provider;

export function useWords(): IWords {
  return React.useContext(Words);
}

/** A state: a sign for the eye, a word for everybody. */
export function State({ state }: { state: IState }): JSX.Element {
  return (
    <span className={`jp-Durable-state jp-mod-${state.tone}`} title={state.about}>
      <span aria-hidden="true" className="jp-Durable-sign">
        {state.sign}
      </span>
      {state.word}
    </span>
  );
}

interface IFaceProps {
  title: string;
  children?: React.ReactNode;
  alert?: boolean;
}

/** What stands where there is nothing else to show. */
export function Face({ title, children, alert }: IFaceProps): JSX.Element {
  return (
    <div className="jp-Durable-face" role={alert ? 'alert' : undefined}>
      <h3>{title}</h3>
      {children}
    </div>
  );
}

interface IButtonProps {
  onClick: () => void;
  children: React.ReactNode;
  label?: string;
  accept?: boolean;
  warn?: boolean;
  disabled?: boolean;
  /** It opens something, and this says whether that is open. */
  expanded?: boolean;
}

export function Button(props: IButtonProps): JSX.Element {
  const mod = props.accept ? 'jp-mod-accept' : props.warn ? 'jp-mod-warn' : 'jp-mod-reject';
  return (
    <button
      type="button"
      className={`jp-Durable-button jp-mod-styled ${mod}`}
      aria-label={props.label}
      title={props.label}
      aria-expanded={props.expanded}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      {props.children}
    </button>
  );
}

/** Run an asynchronous question when `key` changes; what is out of date is dropped. */
export function useAnswer<T>(
  ask: (() => Promise<T>) | null,
  key: string
): { answer: T | null; problem: string; asking: boolean } {
  const [state, set] = React.useState<{ key: string; answer: T | null; problem: string; asking: boolean }>({
    key: '',
    answer: null,
    problem: '',
    asking: ask !== null
  });
  React.useEffect(() => {
    if (!ask) {
      set({ key, answer: null, problem: '', asking: false });
      return;
    }
    let valid = true;
    set(before => ({ ...before, asking: true }));
    ask().then(
      answer => valid && set({ key, answer, problem: '', asking: false }),
      reason =>
        valid &&
        set({
          key,
          answer: null,
          problem: reason instanceof Error ? reason.message : String(reason),
          asking: false
        })
    );
    return () => {
      valid = false;
    };
    // `ask` is a new function at each drawing; the key says whether it asks something new.
  }, [key]);
  return state;
}
