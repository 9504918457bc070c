/** English, where there is no translator of JupyterLab. */
import type { IWords } from './format';

export const plainWords: IWords = {
  __: (text, ...values) => filled(text, values),
  _n: (one, many, count, ...values) => filled(count === 1 ? one : many, [count, ...values])
};

/** `%1` is the first value, and so on. A value that holds `%2` stays as it is. */
function filled(text: string, values: readonly unknown[]): string {
  return text.replace(/%(\d+)/g, (mark, number: string) => {
    const index = Number(number) - 1;
    return index in values ? String(values[index]) : mark;
  });
}
