/** Which rows of a long list have to be on the page. Pure arithmetic; every row has the same height. */

export interface IWindow {
  /** First row to draw. */
  first: number;
  /** One after the last row to draw. */
  end: number;
}

/**
 * The rows to draw: those in sight, and some beyond so that fast scrolling shows no gap.
 *
 * @param top - pixels scrolled
 * @param height - pixels in sight
 * @param row - pixels of one row
 * @param count - number of rows
 * @param beyond - rows to draw above and below
 */
export function windowOf(top: number, height: number, row: number, count: number, beyond = 12): IWindow {
  const first = Math.max(0, Math.min(count, Math.floor(top / row)) - beyond);
  const end = Math.min(count, Math.ceil((Math.max(0, top) + height) / row) + beyond);
  return { first, end: Math.max(first, end) };
}

/** How far to scroll so that a row is in sight; the present place if it is already. */
export function scrollTo(index: number, top: number, height: number, row: number): number {
  const start = index * row;
  if (start < top) {
    return start;
  }
  return start + row > top + height ? Math.max(0, start + row - height) : top;
}
