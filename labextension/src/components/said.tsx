/** What the log says to something that was sent to it. */
import * as React from 'react';
import type { IDone } from '../shapes';
import { Button, useWords } from './words';

export interface ISaid {
  said: string;
  refused: boolean;
  busy: boolean;
  /** Sends; `done` is called with the answer, before it is shown. */
  send: (ask: () => Promise<IDone> | undefined, done?: (answer: IDone) => void) => void;
}

const NOTHING = { said: '', refused: false, busy: false };

/**
 * Sends one thing at a time, and keeps what was said to it.
 *
 * @param over - forget what was said: it is old
 */
export function useSaid(over = false): ISaid {
  const [state, set] = React.useState(NOTHING);
  const there = React.useRef(true);
  React.useEffect(() => {
    there.current = true;
    return () => {
      there.current = false;
    };
  }, []);
  React.useEffect(() => {
    if (over) {
      set(NOTHING);
    }
  }, [over]);
  const send: ISaid['send'] = (ask, done) => {
    const asked = state.busy ? undefined : ask();
    if (!asked) {
      return;
    }
    set({ said: '', refused: false, busy: true });
    asked.then(
      answer => {
        done?.(answer);
        if (there.current) {
          set({ said: answer.message, refused: false, busy: false });
        }
      },
      reason =>
        there.current &&
        set({ said: reason instanceof Error ? reason.message : String(reason), refused: true, busy: false })
    );
  };
  return { ...state, send };
}

export function Said({
  said,
  refused,
  onResume
}: {
  said: string;
  refused: boolean;
  /** Goes on; absent where nothing can be run from here. */
  onResume?: () => void;
}): JSX.Element | null {
  const words = useWords();
  const box = React.useRef<HTMLParagraphElement>(null);
  React.useEffect(() => {
    // In braces: Chromium gives a promise, which React would take for what ends the effect.
    box.current?.scrollIntoView?.({ block: 'nearest' });
  }, [said]);
  return said ? (
    <>
      <p ref={box} role={refused ? 'alert' : 'status'} className={refused ? 'jp-Durable-error' : ''}>
        {said}
      </p>
      {!refused && onResume && (
        <div className="jp-Durable-buttons">
          <Button accept onClick={onResume}>
            {words.__('Resume')}
          </Button>
        </div>
      )}
    </>
  ) : null;
}
