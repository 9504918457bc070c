/** The details of a step that waits, or has waited: the question, what was shown, and who ended it. */
import * as React from 'react';
import type { IActions } from '../actions';
import { moment } from '../format';
import type { IStepRow, IWaitPart } from '../shapes';
import type { Store } from '../store';
import { untilText } from '../waits';
import { Shown, useAnswers, useNow, Wait } from './answering';
import { useWords } from './words';

interface IWaitedProps {
  store: Store;
  actions: IActions;
  row: IStepRow;
  wait: IWaitPart;
}

export function Waited({ store, actions, row, wait }: IWaitedProps): JSX.Element {
  const words = useWords();
  const answers = useAnswers(store);
  const open = store.waits?.find(each => each.run === store.run && each.request === wait.request);
  const at = useNow(open !== undefined && wait.until !== null);
  const { receipt } = wait;
  const until =
    row.kind === 'timer' && wait.until !== null ? untilText({ ...wait, kind: 'timer' }, at, words) : '';
  return (
    <div className="jp-Durable-wait">
      {wait.question && (
        <p>
          <strong>{wait.question}</strong>
        </p>
      )}
      {open ? (
        <Wait
          store={store}
          actions={actions}
          wait={open}
          answers={answers}
          at={at}
          here={store.item?.here ?? false}
          open={false}
        />
      ) : (
        <>
          {until && <p>{until}</p>}
          <Shown shown={wait.shown} />
          {receipt && (
            <p>{words.__('Answered by %1 (%2), %3.', receipt.by, receipt.via, moment(receipt.at))}</p>
          )}
          {answers.refused && (
            <p role="alert" className="jp-Durable-error">
              {answers.said}
            </p>
          )}
        </>
      )}
    </div>
  );
}
