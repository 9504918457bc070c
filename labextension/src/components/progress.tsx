/** How far something is: a bar and a count. */
import * as React from 'react';
import { left, moment } from '../format';
import { countText, part, progressText } from '../progress';
import type { IProgressItem, IStepRow, StepStatus } from '../shapes';
import { useNow } from './answering';
import { useWords } from './words';

interface IProgressProps {
  progress: IProgressItem;
  /** Of what. */
  label: string;
  /** Where there is little room: the count without what is counted. */
  small?: boolean;
}

export function Progress({ progress, label, small }: IProgressProps): JSX.Element {
  const done = part(progress);
  return (
    <span className={`jp-Durable-progress${small ? ' jp-mod-small' : ''}`}>
      <span
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={done === null ? undefined : Math.round(done * 100)}
        aria-valuetext={progressText(progress)}
        className={`jp-Durable-progressBar${done === null ? ' jp-mod-unknown' : ''}`}
      >
        <span style={{ width: `${(done ?? 0) * 100}%` }} />
      </span>
      <span aria-hidden="true">{small ? countText(progress) : progressText(progress)}</span>
    </span>
  );
}

/** What the body of a step has said of itself: how far it is, and that it lives. */
export function Life({ row, status }: { row: IStepRow; status: StepStatus }): JSX.Element | null {
  const words = useWords();
  const running = status === 'running';
  const at = useNow(running && row.beat !== null);
  if (!row.progress && row.beat === null && !row.missed) {
    return null;
  }
  const ago = row.beat === null ? '' : left(Math.max(0, at - row.beat));
  return (
    <div className="jp-Durable-life">
      {row.progress && <Progress progress={row.progress} label={words.__('Progress of %1', row.label)} />}
      {row.beat !== null && (
        <p>
          {running
            ? words.__('Heard of last: %1 (%2 ago).', moment(row.beat), ago)
            : words.__('Heard of last: %1.', moment(row.beat))}
        </p>
      )}
      {row.missed && (
        <p role="note" className="jp-Durable-missed">
          <span aria-hidden="true">△ </span>
          {row.missed}
        </p>
      )}
    </div>
  );
}
