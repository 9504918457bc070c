import { filled, formOf, isLossy, type IForm } from '../schemaForm';
import { plainWords as words } from '../plainWords';

const fill = (form: IForm, ...texts: string[]): unknown => {
  const read = filled(form, texts, words);
  return 'value' in read ? read.value : Object.fromEntries(read.problems);
};

const PAYMENT = {
  type: 'object',
  required: ['sum', 'kind', 'paid'],
  properties: {
    sum: { type: 'number', description: 'In euros' },
    kind: { enum: ['card', 7, null] },
    paid: { type: 'boolean' },
    count: { type: 'integer', default: 3 },
    note: { type: 'string', title: 'A note' },
    lines: { type: 'array' }
  }
};

it('makes a field of each property, with its name, description and default', () => {
  const form = formOf(PAYMENT);
  expect(form.object).toBe(true);
  expect(form.fields.map(each => [each.title, each.kind, each.required])).toEqual([
    ['sum', 'number', true],
    ['kind', 'enum', true],
    ['paid', 'boolean', true],
    ['count', 'integer', false],
    ['A note', 'text', false],
    ['lines', 'json', false]
  ]);
  expect(form.fields[0]?.description).toBe('In euros');
  expect(form.fields[3]?.initial).toBe('3');
});

it('makes the value of what was typed, and leaves out what is empty', () => {
  const form = formOf(PAYMENT);
  expect(fill(form, '3.5', '1', 'false', '', '', '')).toEqual({ sum: 3.5, kind: 7, paid: false });
  expect(fill(form, '1e3', '2', 'true', '4', ' hi ', '[1]')).toEqual({
    sum: 1000,
    kind: null,
    paid: true,
    count: 4,
    note: ' hi ',
    lines: [1]
  });
});

it('says at each field what is wrong', () => {
  expect(fill(formOf(PAYMENT), 'much', '', '', '1.5', '', '[1,]')).toEqual({
    0: 'This must be a number.',
    1: 'Choose one.',
    2: 'Choose one.',
    3: 'This must be a whole number of at most 15 digits.',
    5: expect.stringContaining('This is no JSON') as unknown
  });
});

it.each([
  [null, '{"a": [1]}', { a: [1] }],
  [{}, 'null', null],
  [{ type: 'string' }, '', ''],
  [{ type: 'integer' }, '-7', -7],
  [{ type: 'boolean' }, 'true', true],
  [{ enum: ['a', 'b'] }, '1', 'b'],
  [{ type: ['string', 'null'] }, '', null],
  [{ type: 'array', items: { type: 'integer' } }, '[1, 2]', [1, 2]],
  // A name that must be there and has no field of its own: only JSON can say it.
  [{ type: 'object', required: ['sum'] }, '{"sum": 3}', { sum: 3 }],
  [{ type: 'object', required: ['sum'], properties: { other: {} } }, '{"sum": 3}', { sum: 3 }]
])('%j is one field', (schema, text, value) => {
  const form = formOf(schema);
  expect(form.object).toBe(false);
  expect(form.fields.length).toBe(1);
  expect(fill(form, text)).toEqual(value);
});

it('follows the names that pydantic gives to parts, and takes "or nothing" as empty', () => {
  const form = formOf({
    $defs: { Kind: { enum: ['card', 'cash'], title: 'Kind' }, Loop: { $ref: '#/$defs/Loop' } },
    type: 'object',
    required: ['kind', 'note'],
    properties: {
      kind: { $ref: '#/$defs/Kind' },
      note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      either: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
      loop: { $ref: '#/$defs/Loop' },
      elsewhere: { $ref: 'http://evil.example/schema.json' }
    }
  });
  expect(form.fields.map(each => each.kind)).toEqual(['enum', 'text', 'json', 'json', 'json']);
  expect(fill(form, '0', '', '', '', '')).toEqual({ kind: 'card', note: null });
});

it('takes a hostile schema as it is: names of the language are names of fields', () => {
  const form = formOf(
    JSON.parse('{"type": "object", "properties": {"__proto__": {"type": "string"}, "constructor": {}}}')
  );
  const read = filled(form, ['x', '1'], words);
  expect(JSON.stringify(read)).toBe('{"value":{"__proto__":"x","constructor":1}}');
  expect(
    formOf({ type: 'object', properties: { a: null, b: 3, c: 'text' } }).fields.map(f => f.kind)
  ).toEqual(['json', 'json', 'json']);
  expect(formOf('nonsense').fields.map(each => each.kind)).toEqual(['json']);
});

describe('a number of many digits', () => {
  it('is refused where JavaScript would change it', () => {
    expect(['{"id": 9007199254740993}', '[1e999]', '-12345678901234567890'].map(isLossy)).toEqual([
      true,
      true,
      true
    ]);
  });

  it('is left alone in a text, and where it fits', () => {
    expect(['{"id": "9007199254740993"}', '"\\"9007199254740993"', '[1, 0.1, 1e20]'].map(isLossy)).toEqual([
      false,
      false,
      false
    ]);
  });
});
