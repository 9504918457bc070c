/**
 * The steps as a tree (WAI-ARIA: `tree`, roving focus). Only the lines in sight are on the page, so that 10,000 steps
 * scroll as ten do; the line that has the focus stays on the page wherever one scrolls, or the focus would be lost.
 */
import * as React from 'react';
import { type ILine, peer } from '../model';
import { scrollTo, windowOf } from '../virtual';

export const ROW = 24;

interface ITreeProps {
  lines: readonly ILine[];
  label: string;
  selected: string | null;
  draw: (line: ILine) => JSX.Element;
  /** What is read aloud for a line. */
  name: (line: ILine) => string;
  onSelect: (line: ILine) => void;
  /** The menu of a line is about to open: it speaks of the chosen step. */
  onChoose: (line: ILine) => void;
  /** Enter, or a second click: show more of it. */
  onOpen: (line: ILine) => void;
  onToggle: (line: ILine, expanded: boolean) => void;
  /** Begin anew at it. */
  onFork: (line: ILine) => void;
  onFilter: () => void;
  onLeave: () => void;
}

export function Tree(props: ITreeProps): JSX.Element {
  const { lines, selected } = props;
  const box = React.useRef<HTMLDivElement>(null);
  const [place, setPlace] = React.useState({ top: 0, height: 400 });
  const [focus, setFocus] = React.useState<string | null>(null);
  const wanted = React.useRef(false);

  const measure = React.useCallback(() => {
    const element = box.current;
    if (element) {
      setPlace({ top: element.scrollTop, height: element.clientHeight });
    }
  }, []);
  React.useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) {
      observer.observe(box.current);
    }
    return () => observer.disconnect();
  }, [measure]);

  // Chosen from elsewhere (what waits, a bar of the timeline): show it, as soon as its line is there.
  const chosen = selected === null ? -1 : lines.findIndex(line => line.key === selected);
  const there = chosen >= 0;
  React.useLayoutEffect(() => {
    const element = box.current;
    if (element && there && selected !== focus) {
      setFocus(selected);
      element.scrollTop = scrollTo(chosen, element.scrollTop, element.clientHeight, ROW);
      measure();
    }
    // Whoever scrolls away or moves the focus afterwards is left alone.
  }, [selected, there]);

  const found = lines.findIndex(line => line.key === (focus ?? selected));
  const active = found < 0 ? 0 : found;
  const { first, end } = windowOf(place.top, place.height, ROW, lines.length);
  const drawn: number[] = [];
  for (let i = first; i < end; i++) {
    drawn.push(i);
  }
  if (lines.length > 0 && (active < first || active >= end)) {
    drawn.push(active);
  }

  const go = (index: number): void => {
    const line = lines[index];
    const element = box.current;
    if (!line || !element) {
      return;
    }
    element.scrollTop = scrollTo(index, element.scrollTop, element.clientHeight, ROW);
    measure();
    wanted.current = true;
    setFocus(line.key);
    if (line.row) {
      props.onSelect(line);
    }
  };
  React.useLayoutEffect(() => {
    if (wanted.current) {
      wanted.current = false;
      box.current
        ?.querySelector<HTMLElement>('[role="treeitem"][tabindex="0"]')
        ?.focus({ preventScroll: true });
    }
  });

  const onKey = (event: React.KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const line = lines[active];
    if (event.key === 'ContextMenu' || (event.shiftKey && event.key === 'F10')) {
      event.preventDefault();
      event.stopPropagation();
      openMenu(event.target as HTMLElement);
      return;
    }
    const page = Math.max(1, Math.floor(place.height / ROW) - 1);
    const moves: Record<string, () => void> = {
      ArrowDown: () => go(Math.min(active + 1, lines.length - 1)),
      ArrowUp: () => go(Math.max(active - 1, 0)),
      Home: () => go(0),
      End: () => go(lines.length - 1),
      PageDown: () => go(Math.min(active + page, lines.length - 1)),
      PageUp: () => go(Math.max(active - page, 0)),
      ArrowRight: () => {
        if (line?.expanded === false) {
          props.onToggle(line, true);
        } else if (line?.expanded) {
          go(active + 1);
        }
      },
      ArrowLeft: () => {
        if (line?.expanded) {
          props.onToggle(line, false);
        } else if (line?.parent) {
          go(lines.findIndex(each => each.key === line.parent));
        }
      },
      Enter: () => line && props.onOpen(line),
      ' ': () => line && props.onOpen(line),
      n: () => go(peer(lines, active, 1)),
      p: () => go(peer(lines, active, -1)),
      f: () => line && props.onFork(line),
      '/': () => props.onFilter(),
      Escape: () => props.onLeave()
    };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      event.stopPropagation();
      move();
    }
  };

  return (
    <div
      ref={box}
      className="jp-Durable-tree"
      role="tree"
      aria-label={props.label}
      data-lm-suppress-shortcuts="true"
      onScroll={measure}
      onKeyDown={onKey}
    >
      <div role="none" className="jp-Durable-treeSpace" style={{ height: lines.length * ROW }}>
        {drawn.map(index => {
          const line = lines[index];
          return (
            line && (
              <div
                key={line.key}
                role="treeitem"
                aria-level={line.level}
                aria-posinset={line.place}
                aria-setsize={line.siblings}
                aria-expanded={line.expanded ?? undefined}
                aria-selected={line.key === selected}
                aria-label={props.name(line)}
                tabIndex={index === active ? 0 : -1}
                className={`jp-Durable-line${line.row ? '' : ' jp-mod-cell'}${line.faint ? ' jp-mod-faint' : ''}`}
                style={{ top: index * ROW, paddingLeft: 4 + (line.level - 1) * 12 }}
                data-step={line.row?.number}
                onFocus={() => focus !== line.key && setFocus(line.key)}
                onContextMenu={() => {
                  setFocus(line.key);
                  if (line.row) {
                    props.onChoose(line);
                  }
                }}
                onClick={() => {
                  setFocus(line.key);
                  if (line.row) {
                    props.onSelect(line);
                  }
                  props.onOpen(line);
                }}
              >
                <span
                  aria-hidden="true"
                  className="jp-Durable-twist"
                  onClick={event => {
                    if (line.expanded !== null) {
                      event.stopPropagation();
                      props.onToggle(line, !line.expanded);
                    }
                  }}
                >
                  {line.expanded === null ? '' : line.expanded ? '▾' : '▸'}
                </span>
                {props.draw(line)}
              </div>
            )
          );
        })}
      </div>
    </div>
  );
}

/** Open the menu of a line by keyboard, where a mouse would open it: JupyterLab listens to the event of the mouse. */
function openMenu(target: HTMLElement): void {
  const box = target.getBoundingClientRect();
  const event = new MouseEvent('contextmenu', {
    bubbles: true,
    cancelable: true,
    clientX: box.left + 24,
    clientY: box.bottom - 4
  });
  target.dispatchEvent(event);
}
