/**
 * The first line of a durable cell, as far as the front end has to know it: whether there is one, the name, and the
 * same line with one more flag. The kernel's own reader is `jupyter_durable/kernel/header.py`. Pure.
 */

export interface IHeader {
  /** Index of its line. */
  line: number;
  /** The line up to and with the magic. */
  before: string;
  /** Name of the run; empty if the cell gives none. */
  name: string;
  rest: string;
}

/** The header of a cell; `null`: an ordinary cell. */
export function findHeader(source: string): IHeader | null {
  const lines = source.split('\n');
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    if (line.trim() === '') {
      continue;
    }
    const magic = /^(\s*%%durable)(?:\s+(.*))?$/.exec(line);
    const pragma = /^(\s*#\|\s*durable)\s*(?::(.*))?$/.exec(line);
    const found = magic ?? pragma;
    if (found) {
      const rest = (found[2] ?? '').trim();
      return { line: i, before: (found[1] ?? '') + (pragma ? ':' : ''), name: nameOf(rest), rest };
    }
    if (!line.trim().startsWith('#|')) {
      return null;
    }
  }
  return null;
}

/** The first word that is neither a flag nor the value of one. */
function nameOf(rest: string): string {
  const words = rest.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
  const switches = ['--fresh', '--strict', '--replay-only', '--shared', '--off', '--plan'];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word.startsWith('#')) {
      return '';
    }
    if (!word.startsWith('-')) {
      return word.replace(/^["']|["']$/g, '');
    }
    if (!word.includes('=') && !switches.includes(word)) {
      i++;
      // A budget may have its unit behind it: `--budget 50k tokens`.
      if (word === '--budget' && ['usd', 'tokens', 'steps'].includes(words[i + 1] ?? '')) {
        i++;
      }
    }
  }
  return '';
}

/** Whether the line has a flag, as a word of its own or with a value behind `=`. */
export function hasFlag(header: IHeader, flag: string): boolean {
  return wordsOf(header.rest).some(word => word === flag || word.startsWith(`${flag}=`));
}

/** The words of a line up to a comment. */
function wordsOf(rest: string): string[] {
  const words = rest.match(/(?:[^\s"']|"[^"]*"|'[^']*')+|\S+/g) ?? [];
  const comment = words.findIndex(word => word.startsWith('#'));
  return comment < 0 ? words : words.slice(0, comment);
}

/** The cell with one more flag in its first line, such as `--fresh`. */
export function withFlag(source: string, flag: string): string {
  const header = findHeader(source);
  if (!header) {
    return source;
  }
  const lines = source.split('\n');
  lines[header.line] = [header.before, ...wordsOf(header.rest), flag].join(' ');
  return lines.join('\n');
}
