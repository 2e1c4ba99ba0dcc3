import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCharacter } from '#testkit/any-character.ts';
import { createTextFormat } from '../../../../src/cli/serve/log/text-line.ts';

const toText = createTextFormat();
const HEAD = { level: 'error', time: '2026-01-01T12:00:00.000Z' };
const format = (fields: object) => toText(`${JSON.stringify({ ...HEAD, ...fields })}\n`);

test('an error has lines of its own, with its frames and its cause', () => {
  const cause = { name: 'Error', code: 'ECONNRESET', stack: ['at b (b.ts:2)'] };
  const err = { name: 'TypeError', stack: ['at a (a.ts:1)', 'at c (c.ts:3)'], cause };
  expect(format({ worker: 2, err, msg: 'odd' })).toBe(
    [
      '2026-01-01T12:00:00.000Z ERROR odd worker=2',
      '    TypeError',
      '      at a (a.ts:1)',
      '      at c (c.ts:3)',
      '    caused by Error code=ECONNRESET',
      '      at b (b.ts:2)',
      '',
    ].join('\n'),
  );
});

test('what only looks like an error is a field', () => {
  expect(format({ err: 'ENOENT', msg: 'odd' })).toBe('2026-01-01T12:00:00.000Z ERROR odd err=ENOENT\n');
  expect(format({ err: null })).toBe('2026-01-01T12:00:00.000Z ERROR err=null\n');
});

test('every field is there, and none of them can move the cursor or begin a line', () => {
  const key = fc
    .stringMatching(/^[a-z_]{1,8}$/)
    .filter((each) => !['level', 'time', 'msg', 'err'].includes(each));
  const value = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.integer(),
    fc.boolean(),
    fc.array(fc.string()),
  );
  fc.assert(
    fc.property(fc.dictionary(key, value), fc.string({ unit: anyCharacter }), (fields, msg) => {
      const text = format({ ...fields, msg });
      expect(text).toMatch(/^[^\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]*\n$/u);
      for (const [name, given] of Object.entries(fields)) {
        const at = text.indexOf(` ${name}=`);
        expect(at).toBeGreaterThan(0);
        if (typeof given === 'number' || typeof given === 'boolean')
          expect(text).toContain(` ${name}=${given}`);
      }
    }),
  );
});

test('a value that could be mistaken for other fields is quoted', () => {
  const fields = { a: 'x b=1', b: '', c: '"', d: 'http://h:1/p?q', e: '\u009b31m\u202e' };
  expect(format({ ...fields, msg: 'm' })).toContain(
    ' m a="x b=1" b="" c="\\"" d=http://h:1/p?q e=\\u009b31m\\u202e\n',
  );
});
