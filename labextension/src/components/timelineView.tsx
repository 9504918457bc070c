/** The steps of a branch as bars over time. Pauses between executions are drawn short. */
import * as React from 'react';
import { duration, stepState } from '../format';
import { sourceOf, statusOf } from '../model';
import type { Store } from '../store';
import { type IBar, layOut } from '../timeline';
import { scrollTo, windowOf } from '../virtual';
import { Face, useWords } from './words';

const LANE = 22;
const WIDTHS = [1, 2, 4, 8, 16, 32];

export function TimelineView({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const history = store.history;
  const [zoom, setZoom] = React.useState(0);
  const [place, setPlace] = React.useState({ top: 0, height: 400 });
  const box = React.useRef<HTMLDivElement>(null);
  const wanted = React.useRef(false);
  const { bars, lanes, seconds } = React.useMemo(
    () => layOut(history, Date.now() / 1000),
    [history.version, history.rows]
  );
  const found = bars.findIndex(bar => bar.row.number === store.step);
  const active = found < 0 ? 0 : found;
  React.useLayoutEffect(() => {
    if (wanted.current) {
      wanted.current = false;
      box.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
    }
  });
  if (bars.length === 0) {
    return <Face title={words.__('No step yet.')} />;
  }
  const { first, end } = windowOf(place.top, place.height, LANE, lanes);
  const go = (index: number): void => {
    const bar = bars[index];
    if (bar && box.current) {
      box.current.scrollTop = scrollTo(bar.lane, box.current.scrollTop, box.current.clientHeight, LANE);
      wanted.current = true;
      store.chooseStep(bar.row.number);
    }
  };
  const onKey = (event: React.KeyboardEvent): void => {
    const by: Record<string, number> = {
      ArrowRight: active + 1,
      ArrowDown: active + 1,
      ArrowLeft: active - 1,
      ArrowUp: active - 1,
      Home: 0,
      End: bars.length - 1
    };
    const index = by[event.key];
    if (index !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      go(Math.max(0, Math.min(bars.length - 1, index)));
    }
  };
  const scale = 100 / (seconds || 1);
  const style = (bar: IBar): React.CSSProperties => ({
    top: bar.lane * LANE,
    left: `${bar.from * scale}%`,
    width: `max(3px, ${(bar.to - bar.from) * scale}%)`
  });
  return (
    <div className="jp-Durable-timeline">
      <div className="jp-Durable-toolbar">
        <label>
          {words.__('Zoom')}{' '}
          <select value={zoom} onChange={event => setZoom(Number(event.target.value))}>
            {WIDTHS.map((width, i) => (
              <option key={width} value={i}>{`${width}×`}</option>
            ))}
          </select>
        </label>
        <span className="jp-Durable-note">
          {words.__('%1 in all; long pauses are cut short', duration(seconds))}
        </span>
      </div>
      <div
        ref={box}
        className="jp-Durable-gantt"
        onKeyDown={onKey}
        onScroll={event =>
          setPlace({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })
        }
        data-lm-suppress-shortcuts="true"
      >
        <div
          role="list"
          aria-label={words.__('Steps over time')}
          className="jp-Durable-lanes"
          style={{ height: lanes * LANE, width: `${(WIDTHS[zoom] ?? 1) * 100}%` }}
        >
          {bars.map((bar, i) => {
            if ((bar.lane < first || bar.lane >= end) && i !== active) {
              return null;
            }
            const state = stepState(
              statusOf(bar.row, history),
              sourceOf(bar.row, history),
              words,
              bar.row.kind
            );
            return (
              <div key={bar.row.number} role="listitem" className="jp-Durable-barItem" style={style(bar)}>
                <button
                  type="button"
                  tabIndex={i === active ? 0 : -1}
                  className={`jp-Durable-bar jp-mod-${state.tone}${bar.row.number === store.step ? ' jp-mod-chosen' : ''}`}
                  title={[bar.row.label, state.word, duration(bar.row.seconds)].filter(Boolean).join(' · ')}
                  onClick={() => store.chooseStep(bar.row.number)}
                >
                  <span aria-hidden="true">{state.sign}</span> {bar.row.label}
                  <span className="jp-Durable-hidden">
                    {[state.word, duration(bar.row.seconds)].join(' ')}
                  </span>
                </button>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
