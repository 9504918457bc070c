/** Below the summary in a cell's own output: what the cell waits for, and the buttons or the form to answer it. */
import * as React from 'react';
import { type IAsked, standing } from '../asked';
import { moment } from '../format';
import type { NotebookWaits } from '../notebookWaits';
import type { IWaitItem } from '../shapes';
import { untilText, waitState, waitTitle } from '../waits';
import { Ask, type IAnswers, Shown, useAnswers, useNow } from './answering';
import { Button, State, useWords } from './words';

interface ICellWaitsProps {
  notebook: NotebookWaits;
  asked: IAsked;
  /** The log was asked since the output said so: what it does not list is not waited for. */
  sure: boolean;
  /** Runs the cell of a run again, as the panel does; `null`: there is no notebook to run it in. */
  runCell: ((run: string) => void) | null;
}

export function CellWaits({ notebook, asked, sure, runCell }: ICellWaitsProps): JSX.Element {
  const words = useWords();
  const answers = useAnswers(notebook);
  const counts = (notebook.waits ?? []).some(
    wait => wait.until !== null && asked.requests.includes(wait.request)
  );
  const at = useNow(counts);
  const { run, open, over, gone } = standing(asked, notebook.runs ?? [], notebook.waits ?? [], at);
  const listed = [...open, ...over];
  const focus = useFocusInside();
  const goesOn =
    run !== null && listed.length > 0 && !listed.some(wait => wait.running) && notebook.canGoOn(run);
  const lost = answers.refused && !open.some(wait => wait.request === answers.request);
  const nothing = listed.length === 0 && !(sure && gone > 0) && !answers.said;
  return (
    <div
      {...focus}
      className={`jp-Durable jp-Durable-cellWaits${open.length > 0 ? ' jp-mod-open' : ''}${nothing ? ' jp-mod-empty' : ''}`}
      role="group"
      aria-label={words.__('What this cell waits for')}
      tabIndex={-1}
      // Or a letter that is typed here would be a command of the notebook.
      data-lm-suppress-shortcuts="true"
    >
      {open.map(wait => (
        <OpenWait key={wait.request} wait={wait} answers={answers} at={at} alone={open.length === 1} />
      ))}
      {over.map(wait => (
        <p key={wait.request} className="jp-Durable-note">
          <strong>{waitTitle(wait, words)}</strong>{' '}
          {wait.answered
            ? words.__(
                'Answered by %1 (%2), %3.',
                wait.answered.by,
                wait.answered.via,
                moment(wait.answered.at)
              )
            : `(${untilText(wait, at, words)})`}
        </p>
      ))}
      {sure && gone > 0 && (
        <p className="jp-Durable-note">
          {words._n(
            '%1 request of this cell no longer waits.',
            '%1 requests of this cell no longer wait.',
            gone
          )}
        </p>
      )}
      {lost && (
        <p role="alert" className="jp-Durable-error">
          {answers.said}
        </p>
      )}
      <p role="status" className="jp-Durable-note">
        {answers.refused ? '' : answers.said}
      </p>
      {goesOn && runCell && (
        <div className="jp-Durable-buttons">
          <Button accept={open.length === 0} onClick={() => runCell(run.run)}>
            {words.__('Run the cell')}
          </Button>
        </div>
      )}
    </div>
  );
}

interface IOpenWaitProps {
  wait: IWaitItem;
  answers: IAnswers;
  at: number;
  alone: boolean;
}

function OpenWait({ wait, answers, at, alone }: IOpenWaitProps): JSX.Element {
  const words = useWords();
  const id = React.useId();
  const until = untilText(wait, at, words);
  const problem = answers.refused && answers.request === wait.request ? `${id}-said` : '';
  return (
    <div className="jp-Durable-wait" data-request={wait.request}>
      <strong>{waitTitle(wait, words)}</strong>
      <div className="jp-Durable-facts">
        <State state={waitState(wait, at, words)} />
        {wait.child && <span>{words.__('child run %1', wait.child)}</span>}
        {until && <span>{until}</span>}
      </div>
      <Shown shown={wait.shown} />
      <Ask wait={wait} open={alone} problem={problem} send={value => answers.send(wait, value)} />
      {problem && (
        <p id={problem} role="alert" className="jp-Durable-error">
          {answers.said}
        </p>
      )}
    </div>
  );
}

/** What had the focus may go away with the answer. Then the focus goes to the next button here, else to the box. */
function useFocusInside(): {
  ref: React.RefObject<HTMLDivElement>;
  onFocus: () => void;
  onBlur: () => void;
} {
  const ref = React.useRef<HTMLDivElement>(null);
  const inside = React.useRef(false);
  React.useLayoutEffect(() => {
    const box = ref.current;
    if (box && inside.current && document.activeElement === document.body) {
      (box.querySelector<HTMLElement>('.jp-Durable-buttons button') ?? box).focus();
    }
  });
  return {
    ref,
    onFocus: () => {
      inside.current = true;
    },
    // A part that is taken away tells nobody that it has lost the focus.
    onBlur: () => {
      inside.current = false;
    }
  };
}
