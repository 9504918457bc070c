/** What a cell that ran with `--replay-only` would execute next: asked of the kernel, told in sentences. */
import type { Kernel } from '@jupyterlab/services';
import { count, type IWords, money } from './format';

/** The facts of `jupyter_durable/kernel/ahead.py`, which says what each means. */
export interface IAhead {
  run: string;
  name: string;
  replayed: number;
  message: string;
  step: string;
  kind: string;
  model: string;
  tokens: number | null;
  usd: number | null;
  why: string;
  asks: boolean;
  again: number;
  again_usd: number;
}

const QUESTION = '__import__("jupyter_durable.kernel.ahead", fromlist=["ahead"]).ahead(get_ipython())';

/** Ask the kernel about the durable cell that it ran last; `null`: it did not stop for `--replay-only`. */
export async function askAhead(kernel: Kernel.IKernelConnection): Promise<IAhead | null> {
  const future = kernel.requestExecute({
    code: '',
    silent: true,
    store_history: false,
    user_expressions: { ahead: QUESTION }
  });
  const reply = await future.done;
  if (reply.content.status !== 'ok') {
    return null;
  }
  const answer = reply.content.user_expressions['ahead'] as { data?: Record<string, unknown> } | undefined;
  const facts = answer?.data?.['application/json'] as Partial<IAhead> | undefined;
  return facts?.run ? (facts as IAhead) : null;
}

/** The most that the next step can cost, short; empty: nobody knows, or it is no model call. */
export function mostText(ahead: IAhead, words: IWords): string {
  if (ahead.usd !== null) {
    return words.__('at most %1', money(ahead.usd));
  }
  return ahead.tokens === null
    ? ''
    : words.__('at most %1 tokens, of a model without a known price', count(ahead.tokens));
}

/** What is said before it spends: a sentence each. */
export function aheadSentences(ahead: IAhead, words: IWords): string[] {
  const said = [
    words._n(
      '%1 step came back from the log. Nothing was executed and nothing was paid so far.',
      '%1 steps came back from the log. Nothing was executed and nothing was paid so far.',
      ahead.replayed
    )
  ];
  if (ahead.step) {
    const what = ahead.kind === 'model' ? words.__('model call') : ahead.kind;
    const told = [what, ahead.model, ahead.why, mostText(ahead, words)].filter(Boolean).join(', ');
    said.push(words.__('The next step has no result there: %1 (%2).', ahead.step, told));
  } else {
    said.push(ahead.message);
  }
  if (ahead.again > 0) {
    const known = words._n(
      '%1 more recorded step is executed again, since its end is not known or it failed',
      '%1 more recorded steps are executed again, since their end is not known or they failed',
      ahead.again
    );
    said.push(ahead.again_usd > 0 ? `${known} (${money(ahead.again_usd)}).` : `${known}.`);
  }
  said.push(words.__('What comes after it, and what that costs, is not known before it runs.'));
  return said;
}
