/** A small form in the panel: letters typed in it are no commands of the notebook, Escape leaves it. */
import * as React from 'react';
import { Button, useWords } from './words';

interface ISmallFormProps {
  label: string;
  /** What its button says. */
  submit: string;
  busy: boolean;
  onSubmit: () => void;
  onLeave: () => void;
  /** What the button says that leaves it; *Cancel* if it is not given. */
  leave?: string;
  children: React.ReactNode;
}

/** The focus goes to its first field when it opens, and back to where it was when it is left. */
export function SmallForm(props: ISmallFormProps): JSX.Element {
  const words = useWords();
  const box = React.useRef<HTMLFormElement>(null);
  React.useLayoutEffect(() => {
    const own = box.current;
    const root = own?.getRootNode() as Document | ShadowRoot | undefined;
    const before = root?.activeElement;
    own?.querySelector<HTMLElement>('input, textarea, select, button')?.focus();
    own?.scrollIntoView?.({ block: 'nearest' });
    return () => {
      // The focus goes back to what opened the form; left alone, it would be lost with it.
      if (own?.contains(root?.activeElement ?? null) && before instanceof HTMLElement && before.isConnected) {
        before.focus();
      }
    };
  }, []);
  return (
    <form
      ref={box}
      className="jp-Durable-form"
      aria-label={props.label}
      noValidate
      onSubmit={event => {
        event.preventDefault();
        props.onSubmit();
      }}
      onKeyDown={event => {
        event.stopPropagation();
        if (event.key === 'Escape') {
          props.onLeave();
        } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          props.onSubmit();
        }
      }}
      data-lm-suppress-shortcuts="true"
    >
      {props.children}
      <div className="jp-Durable-buttons">
        <button type="submit" className="jp-Durable-button jp-mod-styled jp-mod-accept" disabled={props.busy}>
          {props.submit}
        </button>
        <Button onClick={props.onLeave}>{props.leave ?? words.__('Cancel')}</Button>
      </div>
    </form>
  );
}
