/** How far something is, for the eye and for the ear. Pure. The numbers come from a program, so anything may come. */
import type { IProgressItem } from './shapes';

const number = (n: number): string => String(Number(n.toPrecision(6)));

/** The count alone, such as `3/10`. */
export function countText({ done, total }: IProgressItem): string {
  return total === null ? number(done) : `${number(done)}/${number(total)}`;
}

/** The count and what is counted, such as `3/10 pages`. */
export function progressText(progress: IProgressItem): string {
  return `${countText(progress)} ${progress.text}`.trim();
}

/** From 0 to 1; `null`: nobody knows. */
export function part({ done, total }: IProgressItem): number | null {
  return total === null || total <= 0 ? null : Math.min(1, Math.max(0, done / total));
}
