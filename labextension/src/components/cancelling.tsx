/** Cancel a run or a child run, with a reason; and what is said of runs that were cancelled or undone. */
import * as React from 'react';
import type { IActions } from '../actions';
import { canCancel, canCancelChild, childPath, whose } from '../cancelling';
import { moment } from '../format';
import type { IRunItem, IStepRow } from '../shapes';
import type { Store } from '../store';
import { SmallForm } from './form';
import { Said, useSaid } from './said';
import { Button, useWords } from './words';

interface ICancelProps {
  store: Store;
  run: IRunItem;
  /** Path of the child run that alone is cancelled; empty: the whole run. */
  child: string;
  /** Whether there is still something to cancel. */
  open: boolean;
}

function Cancel({ store, run, child, open }: ICancelProps): JSX.Element {
  const words = useWords();
  const id = React.useId();
  const { said, refused, busy, send } = useSaid();
  const [reason, setReason] = React.useState('');
  const name = whose(run.name, child);
  const cancel = (): void =>
    send(
      () => store.api?.cancel({ run: run.run, child, reason: reason.trim() }),
      () => store.sent(run.run)
    );
  const done = said !== '' && !refused;
  React.useEffect(() => {
    // It has ended, and how is said elsewhere: what was said here is old.
    if (!open) {
      store.openForm(null);
    }
  }, [open]);
  return (
    <div className="jp-Durable-deed">
      {!done && (
        <SmallForm
          label={words.__('Cancel %1', name)}
          submit={child ? words.__('Cancel the child run') : words.__('Cancel the run')}
          leave={words.__('Do not cancel')}
          busy={busy}
          onSubmit={cancel}
          onLeave={() => store.openForm(null)}
        >
          <p>
            {child
              ? words.__(
                  'Child run %1 ends at its next await or step. Its parent receives ChildCancelled, and may go on without it.',
                  name
                )
              : run.status === 'running'
                ? words.__(
                    'Run %1 ends at its next await or step. What is recorded stays, and it goes on only when it is resumed.',
                    name
                  )
                : words.__(
                    'Run %1 goes on only when somebody resumes it, also where its cell is run. What is recorded stays.',
                    name
                  )}
          </p>
          <label htmlFor={id}>{words.__('Reason (may be left out)')}</label>
          <input
            id={id}
            type="text"
            autoComplete="off"
            value={reason}
            onChange={event => setReason(event.target.value)}
          />
        </SmallForm>
      )}
      <Said said={said} refused={refused} />
    </div>
  );
}

/** The form for the run that is shown. */
export function CancelRun({ store, run }: { store: Store; run: IRunItem }): JSX.Element {
  return <Cancel store={store} run={run} child="" open={canCancel(run)} />;
}

/** The form for the child run that is chosen. */
export function CancelChild({ store, row }: { store: Store; row: IStepRow }): JSX.Element | null {
  const { item, history, shown } = store;
  return (
    item && (
      <Cancel
        store={store}
        run={item}
        child={childPath(row, history)}
        open={canCancelChild(row, history, item, shown)}
      />
    )
  );
}

interface IClosedProps {
  store: Store;
  actions: IActions;
  run: IRunItem;
}

/** Who has cancelled the run, and the way on. */
export function Cancelled({ store, actions, run }: IClosedProps): JSX.Element {
  const words = useWords();
  const { said, refused, busy, send } = useSaid();
  const { resume } = actions;
  const goOn = (): void =>
    resume
      ? resume(run.run)
      : send(
          () => store.api?.resume({ run: run.run }),
          () => store.sent(run.run)
        );
  return (
    <div className="jp-Durable-settle">
      <p>
        <strong>{words.__('Cancelled.')}</strong> {run.waits?.message}
      </p>
      {(run.here || !resume) && (
        <div className="jp-Durable-buttons">
          <Button accept disabled={busy} label={words.__('Resume %1', run.name)} onClick={goOn}>
            {words.__('Resume')}
          </Button>
        </div>
      )}
      <Said said={said} refused={refused} />
    </div>
  );
}

/** Who has undone the branch, and the ways on: nothing of it is replayed or continued. */
export function Undone({ store, actions, run }: IClosedProps): JSX.Element | null {
  const words = useWords();
  const undone = store.branchItem?.undone;
  if (!undone) {
    return null;
  }
  const first = [...store.history.rows.values()].sort((a, b) => a.number - b.number)[0];
  const fork = (): void => {
    if (store.step === null && first) {
      store.chooseStep(first.number);
    }
    store.openForm('fork');
  };
  const { fresh } = actions;
  const line = `%%durable ${run.name} --fresh`;
  return (
    <div className="jp-Durable-settle">
      <p>
        <strong>{words.__('Undone.')}</strong>{' '}
        {undone.finished
          ? words.__(
              '%1 has undone this branch at %2: what it recorded is true no more, so its cell does not replay it.',
              undone.by,
              moment(undone.at)
            )
          : words.__(
              '%1 began to undo this branch at %2, and that has not come to its end. Say the undo again, in the kernel that has its functions:',
              undone.by,
              moment(undone.at)
            )}
      </p>
      {!undone.finished && <code>{`%durable undo ${run.name} --yes`}</code>}
      <div className="jp-Durable-buttons">
        {undone.finished && first && <Button onClick={fork}>{words.__('Fork …')}</Button>}
        {run.here && fresh && (
          <Button warn label={words.__('Start %1 fresh', run.name)} onClick={() => fresh(run.run)}>
            {words.__('Start fresh')}
          </Button>
        )}
      </div>
      {!fresh && (
        <p>
          {words.__('To start fresh, run the cell with this first line:')} <code>{line}</code>
        </p>
      )}
    </div>
  );
}
