/**
 * A form out of the JSON schema of an answer. Pure. What a form cannot say is left to a field of JSON, and what a schema
 * asks beyond types and names is left to whoever takes the answer: it refuses in a sentence of its own.
 */
import type { IWords } from './format';

export type FieldKind = 'text' | 'number' | 'integer' | 'boolean' | 'enum' | 'json';

export interface IField {
  /** Of the property; empty if the answer is this one value. */
  name: string;
  title: string;
  description: string;
  kind: FieldKind;
  required: boolean;
  /** Whether `null` is a value of it, which an empty field stands for. */
  nullable: boolean;
  /** What may be chosen. */
  options: readonly unknown[];
  /** What stands in the field at first, as it would be typed. */
  initial: string;
}

export interface IForm {
  /** Whether the answer is an object made of the fields; else it is the value of the only one. */
  object: boolean;
  fields: readonly IField[];
}

type Json = Record<string, unknown>;

/** More fields than that are no form. */
const MOST = 40;
/** How often one schema may name another. */
const DEEP = 8;

/** @param schema - JSON schema; `null`: any JSON */
export function formOf(schema: unknown): IForm {
  const resolved = resolve(schema, schema);
  const whole: IForm = { object: false, fields: [field('', schema, schema, true)] };
  if (!isJson(resolved) || resolved['type'] !== 'object' || !isJson(resolved['properties'])) {
    return whole;
  }
  const properties = Object.entries(resolved['properties']);
  const told = resolved['required'];
  const required = new Set<unknown>(Array.isArray(told) ? told : []);
  const names = new Set<unknown>(properties.map(([name]) => name));
  const covered = [...required].every(name => names.has(name));
  if (properties.length === 0 || properties.length > MOST || !covered) {
    return whole;
  }
  return {
    object: true,
    fields: properties.map(([name, part]) => field(name, part, schema, required.has(name)))
  };
}

function field(name: string, part: unknown, root: unknown, required: boolean): IField {
  const { schema, nullable } = withoutNull(resolve(part, root), root);
  const kind = kindOf(schema);
  const text = (key: string): string => {
    const own = isJson(part) ? part[key] : undefined;
    const found = own ?? schema?.[key];
    return typeof found === 'string' ? found : '';
  };
  const options = kind === 'enum' ? (schema?.['enum'] as unknown[]) : [];
  const preset = isJson(part) ? part['default'] : undefined;
  return {
    name,
    title: text('title') || name,
    description: text('description'),
    kind,
    required,
    nullable,
    options,
    initial: preset === undefined || preset === null ? '' : typed(kind, options, preset)
  };
}

function kindOf(schema: Json | null): FieldKind {
  const allowed = schema?.['enum'];
  if (Array.isArray(allowed) && allowed.length > 0 && allowed.length <= 200) {
    return 'enum';
  }
  switch (schema?.['type']) {
    case 'string':
      return 'text';
    case 'number':
    case 'integer':
    case 'boolean':
      return schema['type'];
    default:
      return 'json';
  }
}

/** A value as it would be typed into a field. */
function typed(kind: FieldKind, options: readonly unknown[], value: unknown): string {
  switch (kind) {
    case 'enum': {
      const place = options.findIndex(each => JSON.stringify(each) === JSON.stringify(value));
      return place < 0 ? '' : String(place);
    }
    case 'text':
      return typeof value === 'string' ? value : '';
    case 'json':
      return JSON.stringify(value);
    default:
      return String(value);
  }
}

/** What a name in a schema stands for: `{"$ref": "#/$defs/Kind"}`. Other documents are not asked. */
function resolve(part: unknown, root: unknown): Json | null {
  let found: unknown = part;
  for (let i = 0; i < DEEP && isJson(found) && typeof found['$ref'] === 'string'; i++) {
    const path = found['$ref'];
    if (!path.startsWith('#/')) {
      return null;
    }
    let at: unknown = root;
    for (const word of path.slice(2).split('/')) {
      const key = word.replace(/~1/g, '/').replace(/~0/g, '~');
      at = isJson(at) && Object.hasOwn(at, key) ? at[key] : undefined;
    }
    found = at;
  }
  return isJson(found) ? found : null;
}

/** Take "or nothing" out of a schema, in the two ways in which it is written. */
function withoutNull(schema: Json | null, root: unknown): { schema: Json | null; nullable: boolean } {
  const either = schema?.['anyOf'] ?? schema?.['oneOf'];
  if (Array.isArray(either)) {
    const parts: (Json | null)[] = either.map(each => resolve(each, root));
    const rest = parts.filter(each => each?.['type'] !== 'null');
    const one = rest[0];
    return rest.length === 1 && rest.length < parts.length && one
      ? { schema: one, nullable: true }
      : { schema: null, nullable: false };
  }
  const types = schema?.['type'];
  if (Array.isArray(types) && types.length === 2 && types.includes('null') && !('enum' in (schema ?? {}))) {
    return { schema: { ...schema, type: types.find(each => each !== 'null') as unknown }, nullable: true };
  }
  return { schema, nullable: false };
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What was typed, made a value; or what is wrong, by the place of the field. */
export type Filled = { value: unknown } | { problems: ReadonlyMap<number, string> };

/** @param texts - what stands in the fields, in their order; of choices the place, of booleans `true` or `false` */
export function filled(form: IForm, texts: readonly string[], words: IWords): Filled {
  const problems = new Map<number, string>();
  const entries: [string, unknown][] = [];
  form.fields.forEach((each, i) => {
    const read = valueOf(each, texts[i] ?? '', words);
    if ('problem' in read) {
      problems.set(i, read.problem);
    } else if (!('absent' in read)) {
      entries.push([each.name, read.value]);
    }
  });
  if (problems.size > 0) {
    return { problems };
  }
  return { value: form.object ? Object.fromEntries(entries) : entries[0]?.[1] };
}

type Read = { value: unknown } | { problem: string } | { absent: true };

function valueOf(each: IField, text: string, words: IWords): Read {
  const { kind } = each;
  if (text.trim() === '') {
    if (each.required && kind === 'text' && !each.nullable) {
      return { value: text };
    }
    if (!each.required) {
      return { absent: true };
    }
    return each.nullable ? { value: null } : { problem: empty(each, words) };
  }
  switch (kind) {
    case 'text':
      return { value: text };
    case 'boolean':
      return { value: text === 'true' };
    case 'enum':
      return { value: each.options[Number(text)] };
    case 'number':
    case 'integer': {
      const number = Number(text);
      if (kind === 'integer' && !Number.isSafeInteger(number)) {
        return { problem: words.__('This must be a whole number of at most 15 digits.') };
      }
      return Number.isFinite(number) ? { value: number } : { problem: words.__('This must be a number.') };
    }
    default:
      try {
        const value = JSON.parse(text) as unknown;
        return isLossy(text)
          ? { problem: words.__('A number of so many digits does not arrive as it is. Put it into quotes.') }
          : { value };
      } catch (reason) {
        const why = reason instanceof Error ? reason.message : String(reason);
        return { problem: words.__('This is no JSON: %1. A text has quotes around it.', why) };
      }
  }
}

/** Whether a number of a JSON text is another once JavaScript has read it. */
export function isLossy(json: string): boolean {
  const numbers = json.replace(/"(?:[^"\\]|\\.)*"/g, '""').match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g) ?? [];
  return numbers.some(each =>
    /^-?\d+$/.test(each) ? !Number.isSafeInteger(Number(each)) : !Number.isFinite(Number(each))
  );
}

function empty(each: IField, words: IWords): string {
  switch (each.kind) {
    case 'json':
      return words.__('Write a value as JSON, such as 42, "paid" or {"id": 7}; null stands for None.');
    case 'enum':
    case 'boolean':
      return words.__('Choose one.');
    default:
      return words.__('Write a number.');
  }
}
