/** What a person types or copies where the panel has no buttons for it. */
import * as React from 'react';
import { codeOf } from '../code';
import { findHeader, withFlag } from '../header';
import type { IStepDetail } from '../shapes';
import type { Store } from '../store';
import { Pre } from './values';
import { useWords } from './words';

export function ByHand({ store, detail }: { store: Store; detail: IStepDetail }): JSX.Element {
  const words = useWords();
  const line = firstLine(store, detail);
  return (
    <details>
      <summary>{line ? words.__('Run from here, or as code') : words.__('As code')}</summary>
      {line && (
        <>
          <p>{words.__('To keep what is before this step, run the cell once with this first line:')}</p>
          <Pre text={line} label={words.__('First line of the cell')} />
          <p>{words.__('To ask the log for this step:')}</p>
        </>
      )}
      <Pre text={codeOf(detail)} label={words.__('Code that asks for this step')} />
    </details>
  );
}

/** The first line of the cell with the flag that runs it from a step on; empty where the run is no cell. */
function firstLine(store: Store, { row, branch }: IStepDetail): string {
  const source = store.detail?.branches.find(each => each.branch === branch)?.source ?? '';
  const header = findHeader(source);
  // A number is one of the newest branch; a step of another one is found by its name.
  const step = branch === store.item?.branch ? row.number : `"${row.label.replace(/"/g, '')}"`;
  return header ? (withFlag(source, `--from ${step}`).split('\n')[header.line] ?? '') : '';
}
