/** How questions reach the log: by REST from JupyterLab, by messages to the kernel from an output cell. */
import type { IDisposable } from '@lumino/disposable';
import type { IHint, IProblem } from './shapes';

export type Parameters = Record<string, string | number | undefined>;

/** Whoever carries questions. Both carry the same ones, and the answers have the same shapes. */
export interface ITransport {
  /**
   * @param path - words of the address; a word may hold a slash
   * @param parameters - undefined ones are left out
   */
  get<T>(path: readonly string[], parameters: Parameters): Promise<T>;
  post<T>(path: readonly string[], parameters: Parameters, body: unknown): Promise<T>;
  /**
   * Listen to hints that something changed, until the answer is disposed. They may be lost and may come twice.
   *
   * @param schema - tells what the hints are called, once that is known
   */
  listen(schema: () => string, take: (hint: IHint) => void): IDisposable;
}

/** Why there is no answer. */
export class RequestError extends Error {
  constructor(
    message: string,
    /** HTTP status, also where no HTTP is spoken; 0: nobody was reached. */
    readonly status: number,
    /** What jupyter_durable said; `null` if somebody else answered. */
    readonly problem: IProblem | null
  ) {
    super(message);
  }

  /** Nobody answers at this address: the server extension is not there, or not enabled. */
  get missing(): boolean {
    return this.status === 404 && this.problem === null;
  }
}

/** The server itself answers an unknown address with `message` too, but knows no `format`. */
export function isProblem(answer: unknown): answer is IProblem {
  return typeof answer === 'object' && answer !== null && 'format' in answer && 'message' in answer;
}
