/** JSON that a person types: looked at before it is sent. Pure. */
import type { IWords } from './format';

/** What is wrong with it, as a sentence; empty: nothing. */
export function jsonProblem(text: string, words: IWords): string {
  try {
    JSON.parse(text);
    return '';
  } catch (reason) {
    const why = reason instanceof Error ? reason.message : String(reason);
    return text.trim()
      ? words.__('This is no JSON: %1. A text has quotes around it.', why)
      : words.__('Write the value, such as 42, "paid" or {"id": 7}; null stands for None.');
  }
}
