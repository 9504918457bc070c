/**
 * Questions by messages of a widget (anywidget) to the kernel.
 *
 * A kernel that takes messages on its main thread alone answers when no cell is running. So a question waits, says
 * that it does, and is asked again from time to time, since a message may be lost. While a cell is running, answers
 * come unasked with the hints; they are kept until somebody asks for them.
 */
import type { IDisposable } from '@lumino/disposable';
import type { IHint, IPage } from './shapes';
import { isProblem, type ITransport, type Parameters, RequestError } from './transport';

/** As much of anywidget's model as is needed here. */
export interface IModel {
  get(name: string): unknown;
  send(content: unknown): void;
  on(event: string, take: (...values: never[]) => void): void;
  off(event: string, take: (...values: never[]) => void): void;
}

/** `busy`: a question waits, and the kernel was heard a while ago. `silent`: it was not. `gone`: it will not answer. */
export type Hearing = 'fine' | 'busy' | 'silent' | 'gone';

/** Milliseconds: a question that waits longer is talked about. */
const PATIENCE = 1500;
/** Milliseconds without a word after which nobody knows whether the kernel is still there. */
const LATELY = 60_000;
/** Milliseconds until a question is asked again; doubled each time. */
const AGAIN = 10_000;
const LONGEST = 300_000;

interface IWaiting {
  key: string;
  take: (status: number, answer: unknown) => void;
  timers: ReturnType<typeof setTimeout>[];
  since: number;
}

interface IFresh {
  path: string[];
  parameters: Parameters;
  /** JSON. */
  answer: string;
}

export class MessageTransport implements ITransport, IDisposable {
  /**
   * @param model - of the widget
   * @param heard - told when `hearing` changes
   */
  constructor(
    private readonly model: IModel,
    private readonly heard: () => void = () => undefined
  ) {
    model.on('msg:custom', this.onMessage);
    model.on('comm_live_update', this.onEnd);
  }

  hearing: Hearing = 'fine';

  get isDisposed(): boolean {
    return this._disposed;
  }

  get<T>(path: readonly string[], parameters: Parameters): Promise<T> {
    const kept = this.pages.take(path, parameters) ?? this.taken(path);
    return kept === undefined ? this.ask('GET', path, parameters, undefined) : Promise.resolve(kept as T);
  }

  post<T>(path: readonly string[], parameters: Parameters, body: unknown): Promise<T> {
    return this.ask('POST', path, parameters, body);
  }

  listen(_schema: () => string, take: (hint: IHint) => void): IDisposable {
    this.listeners.add(take);
    const listeners = this.listeners;
    return {
      get isDisposed() {
        return !listeners.has(take);
      },
      dispose: () => void listeners.delete(take)
    };
  }

  dispose(): void {
    this._disposed = true;
    this.model.off('msg:custom', this.onMessage);
    this.model.off('comm_live_update', this.onEnd);
    for (const waiting of this.waiting.values()) {
      waiting.timers.forEach(clearTimeout);
    }
    this.waiting.clear();
    this.listeners.clear();
  }

  private ask<T>(method: string, path: readonly string[], parameters: Parameters, body: unknown): Promise<T> {
    const id = `${this.mine}-${++this.count}`;
    // `null` where there is nothing: what is undefined is lost on the way.
    const told = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, value ?? null]));
    const send = (): void => {
      try {
        this.model.send({
          durable: 'ask',
          question: id,
          method,
          path: [...path],
          parameters: told,
          body: body ?? null
        });
      } catch {
        // The front end has closed the connection to the kernel.
        this.onEnd();
      }
    };
    return new Promise<T>((resolve, reject) => {
      const waiting: IWaiting = {
        key: keyOf(path, parameters),
        since: Date.now(),
        timers: [setTimeout(this.look, PATIENCE)],
        take: (status, answer) => {
          waiting.timers.forEach(clearTimeout);
          this.waiting.delete(id);
          if (status < 400) {
            resolve(answer as T);
          } else {
            const problem = isProblem(answer) ? answer : null;
            reject(new RequestError(problem?.message ?? `Status ${status}`, status, problem));
          }
        }
      };
      this.waiting.set(id, waiting);
      // What a person says is said once.
      const again = (pause: number): void => {
        waiting.timers[1] = setTimeout(() => {
          send();
          again(Math.min(pause * 2, LONGEST));
        }, pause);
      };
      if (method === 'GET') {
        again(AGAIN);
      }
      send();
    });
  }

  private readonly onMessage = (content: { durable?: string } & Record<string, unknown>): void => {
    if (content?.durable === 'answer') {
      this.gone = false;
      this.lately = Date.now();
      this.waiting
        .get(String(content['question']))
        ?.take(Number(content['status']), parsed(content['answer']));
      this.look();
    } else if (content?.durable === 'hint') {
      this.gone = false;
      this.lately = Date.now();
      for (const fresh of content['fresh'] as IFresh[]) {
        this.keep(fresh);
      }
      this.look();
      for (const take of [...this.listeners]) {
        take(content['hint'] as IHint);
      }
    }
  };

  /** An answer that came unasked: for who waits for it already, else for who asks next. */
  private keep({ path, parameters, answer }: IFresh): void {
    const found: unknown = parsed(answer);
    if (path.length === 5) {
      this.pages.keep(path, Number(parameters['after']), found as IPage);
    } else {
      this.kept.set(path.join('\n'), { found, until: Date.now() + PATIENCE });
    }
    for (const waiting of [...this.waiting.values()]) {
      const [words, asked] = JSON.parse(waiting.key) as [string[], Parameters];
      const now = this.pages.take(words, asked) ?? this.taken(words);
      if (now !== undefined) {
        waiting.take(200, now);
      }
    }
  }

  private taken(path: readonly string[]): unknown {
    const key = path.join('\n');
    const kept = this.kept.get(key);
    this.kept.delete(key);
    return kept && kept.until > Date.now() ? kept.found : undefined;
  }

  private readonly onEnd = (): void => {
    this.gone = true;
    this.look();
  };

  /** See how the kernel is heard, and tell if that has changed. */
  private readonly look = (): void => {
    const oldest = Math.min(...[...this.waiting.values()].map(each => each.since));
    const late = Date.now() - oldest >= PATIENCE;
    const known = Date.now() - this.lately < LATELY;
    const hearing: Hearing = this.gone ? 'gone' : !late ? 'fine' : known ? 'busy' : 'silent';
    if (late && !this.gone) {
      clearTimeout(this.later);
      this.later = setTimeout(this.look, LATELY / 4);
    }
    if (hearing !== this.hearing && !this._disposed) {
      this.hearing = hearing;
      this.heard();
    }
  };

  private readonly mine = Math.random().toString(36).slice(2);
  private count = 0;
  private readonly waiting = new Map<string, IWaiting>();
  private readonly listeners = new Set<(hint: IHint) => void>();
  private readonly kept = new Map<string, { found: unknown; until: number }>();
  private readonly pages = new Pages();
  private lately = 0;
  private later: ReturnType<typeof setTimeout> | undefined;
  private gone = false;
  private _disposed = false;
}

/**
 * Pages of steps that came unasked. Each goes on where the last one ended, so they are put together until somebody
 * asks: what is kept then serves whoever has the steps up to a place inside of it, since a row may come twice.
 */
export class Pages {
  keep(path: readonly string[], after: number, page: IPage): void {
    const key = path.join('\n');
    const kept = this.kept.get(key);
    if (!kept || page.reset || kept.page.next !== after) {
      this.kept.set(key, { from: page.reset ? -1 : after, page });
      return;
    }
    const rows = new Map(kept.page.rows.map(row => [row.number, row]));
    for (const row of page.rows) {
      rows.set(row.number, row);
    }
    this.kept.set(key, {
      from: kept.from,
      page: { ...page, rows: [...rows.values()], reset: kept.page.reset }
    });
  }

  take(path: readonly string[], parameters: Parameters): IPage | undefined {
    const key = path.join('\n');
    const kept = this.kept.get(key);
    const after = Number(parameters['after'] ?? -1);
    // Older than what is known already, or not going on from it.
    if (!kept || kept.page.next <= after || (kept.from > after && !kept.page.reset)) {
      return undefined;
    }
    this.kept.delete(key);
    return kept.page;
  }

  private readonly kept = new Map<string, { from: number; page: IPage }>();
}

function keyOf(path: readonly string[], parameters: Parameters): string {
  return JSON.stringify([path, parameters]);
}

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return null;
  }
}
