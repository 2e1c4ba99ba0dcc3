import { expect, test } from 'vitest';
import { Fields } from '../../../src/wire/message/fields.ts';

function createFields(lines: readonly (readonly [name: string, value: string])[]): Fields {
  const fields = new Fields();
  for (const [name, value] of lines) fields.add(name, name.toLowerCase(), value);
  return fields;
}

test('fields keep their order and spelling', () => {
  const fields = createFields([
    ['X-B', '1'],
    ['x-a', '2'],
    ['X-b', '3'],
  ]);

  expect(fields.names).toEqual(['X-B', 'x-a', 'X-b']);
  expect(fields.lowerNames).toEqual(['x-b', 'x-a', 'x-b']);
  expect(fields.values).toEqual(['1', '2', '3']);
  expect(fields.count).toBe(3);
});

test('several fields of one name are joined in order', () => {
  const fields = createFields([
    ['Accept', 'a'],
    ['Via', 'x'],
    ['accept', ''],
    ['ACCEPT', 'b, c'],
  ]);

  expect(fields.get('accept')).toBe('a, , b, c');
  expect(fields.get('via')).toBe('x');
  expect(fields.get('cookie')).toBeUndefined();
});

test('names of object members are not fields until they are added', () => {
  const fields = createFields([['constructor', 'x']]);

  expect(fields.get('constructor')).toBe('x');
  expect(fields.get('__proto__')).toBeUndefined();
  expect(fields.get('tostring')).toBeUndefined();
});
