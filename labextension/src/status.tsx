/** One word in the status bar: how the durable cells of the notebook stand. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';
import { countWaiting } from './components/waiting';
import { type IWords, isUnfinished, spentText } from './format';
import type { Store } from './store';

export class StatusWidget extends ReactWidget {
  constructor(
    private readonly store: Store,
    private readonly words: IWords,
    private readonly open: () => void
  ) {
    super();
    this.addClass('jp-Durable-status');
  }

  protected override render(): JSX.Element {
    return <UseSignal signal={this.store.changed}>{() => this.text()}</UseSignal>;
  }

  private text(): JSX.Element | null {
    const runs = this.store.runs?.runs.filter(run => run.here) ?? [];
    if (runs.length === 0) {
      return null;
    }
    const { words } = this;
    const running = runs.filter(run => run.status === 'running').length;
    const waiting = countWaiting(this.store);
    const open = runs.filter(isUnfinished).length;
    const parked = runs.filter(run => run.status === 'parked').length;
    const cancelled = runs.filter(run => run.status === 'cancelled').length;
    const totals = this.store.history.page?.totals;
    const parts = [
      running > 0
        ? words._n('%1 durable cell running', '%1 durable cells running', running)
        : open > 0
          ? words._n('%1 durable cell unfinished', '%1 durable cells unfinished', open)
          : parked > 0
            ? words._n('%1 durable cell parked', '%1 durable cells parked', parked)
            : cancelled > 0
              ? words._n('%1 durable cell cancelled', '%1 durable cells cancelled', cancelled)
              : words.__('durable: completed'),
      ...(waiting > 0 ? [words._n('%1 waiting', '%1 waiting', waiting)] : []),
      ...(totals && totals.calls > 0 ? [spentText(totals, words)] : [])
    ];
    return (
      <button type="button" title={words.__('Open the panel of durable cells')} onClick={this.open}>
        {parts.join(' · ')}
      </button>
    );
  }
}
