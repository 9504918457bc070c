/** What the branch is that is shown, and which one the cell takes up next. */
import * as React from 'react';
import type { IActions } from '../actions';
import { branchSentences, nextSentence } from '../branches';
import type { Store } from '../store';
import { Said, useSaid } from './said';
import { Button, useWords } from './words';

interface IBranchProps {
  store: Store;
  actions: IActions;
}

/** Whether it says itself how to go on: the shown branch is the one that the cell takes up next. */
export function leadsOn(store: Store): boolean {
  const { item, branchItem: branch } = store;
  if (!item || !branch || item.next !== branch.branch || item.status === 'running') {
    return false;
  }
  return branch.status !== 'parked' || store.canGoOn(item);
}

export function Branch({ store, actions }: IBranchProps): JSX.Element | null {
  const words = useWords();
  const { item, branchItem: branch } = store;
  const { said, refused, busy, send } = useSaid(item?.status === 'running');
  const box = React.useRef<HTMLDivElement>(null);
  const made = branch !== null && store.made === branch.branch;
  React.useEffect(() => {
    if (made) {
      // From the form, which is gone, to what can be done now.
      store.made = '';
      box.current?.querySelector<HTMLElement>('button')?.focus();
    }
  }, [made]);
  if (!item || !branch) {
    return null;
  }
  const { run } = item;
  const branches = store.detail?.branches ?? [];
  const next = branches.find(each => each.branch === item.next);
  const isNext = next === branch;
  const sentences = branchSentences(branch, words);
  const offers = branches.length > 1 && !isNext && (next !== undefined || branch.branch !== item.branch);
  if (sentences.length === 0 && !next && !offers && !said) {
    return null;
  }
  const take = (): void =>
    send(
      () => store.api?.switch({ run, branch: branch.branch }),
      () => void store.refresh()
    );
  return (
    <div ref={box} className={`jp-Durable-branch${isNext ? ' jp-mod-next' : ''}`}>
      {sentences.length > 0 && <p className="jp-Durable-note">{sentences.join(' ')}</p>}
      {isNext && item.status !== 'running' && <p role="status">{nextSentence(branch, words)}</p>}
      {next && !isNext && <p>{words.__('The cell takes up %1 when it runs next.', next.name)}</p>}
      <div className="jp-Durable-buttons">
        {leadsOn(store) && item.here && actions.runCell && (
          <Button
            accept
            label={words.__('Run the cell of %1', item.name)}
            onClick={() => actions.runCell?.(run)}
          >
            {words.__('Run the cell')}
          </Button>
        )}
        {offers && (
          <Button disabled={busy} onClick={take}>
            {words.__('Take up %1 next', branch.name)}
          </Button>
        )}
        {branch.origin && (
          <Button onClick={() => actions.view('compare')}>
            {words.__('Compare with %1', branch.origin.name)}
          </Button>
        )}
      </div>
      {!isNext || refused ? <Said said={said} refused={refused} /> : null}
    </div>
  );
}
