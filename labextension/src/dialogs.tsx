/** What a person is asked before a cell spends. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import * as React from 'react';
import { aheadSentences, type IAhead } from './ahead';
import type { IAgain } from './again';
import { type IWords, spentText } from './format';

/** Enter, pressed for a dialog that was there a moment ago, must not buy anything. */
const REFUSE = 0;

/**
 * @param name - of the run, or how the cell is called
 * @param ahead - what the kernel says; `null`: the first line of the cell asks for steps to be executed again
 * @param more - whether durable cells follow, for which one may say yes as well
 */
export async function askToSpend(
  name: string,
  ahead: IAhead | null,
  more: boolean,
  words: IWords
): Promise<'yes' | 'all' | 'no'> {
  const said = ahead
    ? aheadSentences(ahead, words)
    : [words.__('The first line of the cell says that steps are executed again, whatever the log holds.')];
  const answer = await showDialog({
    title: words.__('%1: execute new steps?', name),
    body: (
      <div className="jp-Durable-ask">
        {said.map((sentence, i) => (
          <p key={i}>{sentence}</p>
        ))}
      </div>
    ),
    checkbox: more ? { label: words.__('Do not ask again for the cells after it'), checked: false } : null,
    buttons: [
      Dialog.cancelButton({ label: words.__('No') }),
      Dialog.okButton({ label: words.__('Yes, go on') })
    ],
    defaultButton: REFUSE
  });
  return !answer.button.accept ? 'no' : answer.isChecked ? 'all' : 'yes';
}

/** Ask before what was paid for is paid for again; nothing recorded: nobody needs to be asked. */
export async function confirmAgain(
  found: IAgain,
  name: string,
  title: string,
  words: IWords
): Promise<boolean> {
  if (found.steps === 0) {
    return true;
  }
  const answer = await showDialog({
    title,
    body: [
      words._n(
        '%1 recorded step of %2 is executed again, on a new branch. It had cost %3.',
        '%1 recorded steps of %2 are executed again, on a new branch. They had cost %3.',
        found.steps,
        name,
        spentText(found, words)
      ),
      words.__('Model calls among them are billed again; what has an effect has it again.'),
      ...(found.doubt > 0
        ? [
            words._n(
              '%1 of them was begun, and nobody knows how it ended: its effect may happen a second time. Look before you go on.',
              '%1 of them were begun, and nobody knows how they ended: their effects may happen a second time. Look before you go on.',
              found.doubt
            )
          ]
        : [])
    ].join(' '),
    buttons: [
      Dialog.cancelButton({ label: words.__('No') }),
      Dialog.warnButton({ label: words.__('Yes, run again') })
    ],
    defaultButton: REFUSE
  });
  return answer.button.accept;
}
