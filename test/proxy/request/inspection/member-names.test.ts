import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findRefusedName,
  lookalikeOf,
  type NameDoubts,
} from '../../../../src/proxy/request/inspection/member-names.ts';

const NAMES = ['model', 'stream', 'n', 'max_tokens', 'text_1'];
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  s: ['S', 'ſ'],
  k: ['K', '\u212a'],
  i: ['I', 'ı'],
};

describe('a key', () => {
  it('resembles a name if some of its letters are in another case, also in one of Unicode', () => {
    const cases = fc
      .constantFrom(...NAMES)
      .chain((name) =>
        fc.tuple(
          fc.constant(name),
          fc.tuple(
            ...Array.from(name, (letter) =>
              fc.constantFrom(letter, ...(OTHERS[letter] ?? [letter.toUpperCase()])),
            ),
          ),
        ),
      );
    fc.assert(
      fc.property(cases, ([name, letters]) => {
        const key = letters.join('');
        fc.pre(key !== name);
        expect(lookalikeOf(key, NAMES)).toBe(name);
      }),
    );
  });

  it.each([
    'Models',
    'Mode',
    'mödel',
    'MODEL ',
    'text-1',
    'ТEXT_1',
    '',
    'temperature',
    '__proto__',
    'N\u0000',
  ])('resembles none otherwise: %j', (key) => expect(lookalikeOf(key, NAMES)).toBeNull());
});

describe('a request with a doubtful name', () => {
  const lookalike: NameDoubts = { lookalike: 'model', repeated: null };
  const repeated: NameDoubts = { lookalike: null, repeated: 'stream' };

  it.each([
    ['another case', lookalike, { isRestricted: true, mayFoldCase: false }, 'model'],
    ['another case', lookalike, { isRestricted: false, mayFoldCase: true }, 'model'],
    ['another case', lookalike, { isRestricted: false, mayFoldCase: false }, undefined],
    ['a name twice', repeated, { isRestricted: true, mayFoldCase: false }, 'stream'],
    ['a name twice', repeated, { isRestricted: false, mayFoldCase: true }, undefined],
    ['no doubt', { lookalike: null, repeated: null }, { isRestricted: true, mayFoldCase: true }, undefined],
  ] as const)(
    'is refused or relayed by who sends it and who may get it: %s, %j, %j',
    (_, names, readers, member) => {
      expect(findRefusedName(names, readers)?.member).toBe(member);
    },
  );
});
