/** A step as Python: what asks the log for it. Pure. */
import type { IStepDetail } from './shapes';

/** Python that asks the log for a step. The value itself stays where it is; nothing of the step is executed. */
export function codeOf(detail: IStepDetail): string {
  const { row } = detail;
  const n = row.label === row.name ? 0 : Number(row.label.slice(row.name.length + 1));
  // A text in JSON is one in Python, too, whatever stands in a stranger's log.
  const key = [detail.run, detail.branch, row.scope, row.name, detail.digest].map(each =>
    JSON.stringify(each)
  );
  return [
    'from jupyter_durable import connect',
    '',
    'with connect() as log:',
    '    found = log.execute(',
    '        "SELECT * FROM steps WHERE run = ? AND branch = ? AND scope = ? AND name = ? AND digest = ? AND n = ?",',
    `        [${key.join(', ')}, ${n}],`,
    '    )',
    '    names = [column[0] for column in found.description]',
    '    step = dict(zip(names, found.fetchone()))',
    'step',
    ''
  ].join('\n');
}
