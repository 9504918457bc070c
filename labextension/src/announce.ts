/**
 * What is said aloud, for people who hear the page: how a run ended, and that one waits for a person. Once each, and
 * not each step, or nobody could listen to anything else.
 */
import { type IWords, itemState } from './format';
import type { IRunItem, IWaitItem } from './shapes';
import { asksText } from './waits';

/** How the runs of a notebook stood when they were looked at last. */
export class Heard {
  /** Whether anybody looked. */
  looked = false;
  readonly runs = new Map<string, string>();
  /** Whether anybody looked at what the runs wait for. */
  asked = false;
  readonly requests = new Set<string>();
}

const standing = (run: IRunItem): string =>
  [run.status, run.waits?.kind ?? '', run.status === 'running' ? '' : run.ended].join('/');

/**
 * The sentences for what has changed since the last look. What is seen for the first time is no news.
 *
 * @param heard - is brought up to date; a new one for each notebook
 */
export function news(heard: Heard, runs: readonly IRunItem[], words: IWords): string[] {
  const first = !heard.looked;
  heard.looked = true;
  const said: string[] = [];
  for (const run of runs) {
    const before = heard.runs.get(run.run);
    const now = standing(run);
    heard.runs.set(run.run, now);
    if (first || before === now || run.status === 'running') {
      continue;
    }
    if (run.waits && (run.waits.kind === 'settle' || run.waits.kind === 'decide')) {
      said.push(words.__('Run %1 waits for you.', run.name));
    } else if (run.waits?.kind === 'answer') {
      // What it asks is said by `asks`.
    } else if (run.status !== 'stopped' || run.waits?.kind === 'read') {
      // One that stopped before it would spend has asked already, by a dialog.
      said.push(words.__('Run %1: %2.', run.name, itemState(run, words).word));
    }
  }
  return said;
}

/**
 * The requests that have begun to wait for a person since the last look, each once. What was seen at the first look is
 * no news.
 */
export function asks(heard: Heard, waits: readonly IWaitItem[]): IWaitItem[] {
  const first = !heard.asked;
  heard.asked = true;
  const fresh = waits.filter(
    wait => wait.kind !== 'timer' && wait.answered === null && !heard.requests.has(wait.request)
  );
  fresh.forEach(wait => heard.requests.add(wait.request));
  return first ? [] : fresh;
}

export function asksSentences(waits: readonly IWaitItem[], words: IWords): string[] {
  return waits.map(wait => asksText(wait, words));
}

/** The one live region of the extension. It lies in the page itself: one in a closed side bar would be silent. */
export class Region {
  constructor(host: HTMLElement = document.body) {
    this.node = document.createElement('div');
    this.node.className = 'jp-Durable-live';
    this.node.setAttribute('role', 'status');
    this.node.setAttribute('aria-live', 'polite');
    host.appendChild(this.node);
  }

  say(sentences: readonly string[]): void {
    if (sentences.length > 0) {
      this.node.textContent = sentences.join(' ');
    }
  }

  readonly node: HTMLElement;
}
