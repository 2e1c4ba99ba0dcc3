import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyCharacter } from '#testkit/any-character.ts';
import { runs } from '#testkit/runs.ts';
import { toCanonicalJson } from '../../src/statement/statement-key.ts';
import { printUnits, toUnits } from '../../src/statement/usage-rows.ts';
import { hasPython } from './prove-with-python.ts';

it('sorts members, has no white space, and escapes what is not printable ASCII', () => {
  const value = { b: [1, null, true], a: { z: 'é\u007f\u2028"\\\n😀', y: '' } };
  expect(toCanonicalJson(value).toString()).toBe(
    '{"a":{"y":"","z":"\\u00e9\\u007f\\u2028\\"\\\\\\n\\ud83d\\ude00"},"b":[1,null,true]}',
  );
});

it('is what Python prints', (context) => {
  if (!hasPython) context.skip('python3 is not installed');
  const text = fc.string({ unit: anyCharacter });
  const json = fc.letrec((tie) => ({
    value: fc.oneof(text, fc.maxSafeInteger(), fc.boolean(), fc.constant(null), tie('list'), tie('object')),
    list: fc.array(tie('value'), { maxLength: 4 }),
    object: fc.dictionary(fc.stringMatching(/^[a-z_][a-z_ A-Z]{0,8}$/), tie('value'), { maxKeys: 4 }),
  })).object;
  const values = fc.sample(json, runs(300));
  const script =
    'import json, sys\nfor line in sys.stdin: print(json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")))';
  const { stdout } = spawnSync('python3', ['-c', script], {
    input: values.map((value) => `${JSON.stringify(value)}\n`).join(''),
    encoding: 'utf8',
  });
  expect(values.map((value) => toCanonicalJson(value).toString())).toEqual(stdout.trimEnd().split('\n'));
});

it('rounds each amount once, so that a sum does not depend on the order', () => {
  expect(printUnits(toUnits(0.1, 12) + toUnits(0.2, 12), 12)).toBe('0.300000000000');
  expect(printUnits(toUnits(1.23e-6, 12), 12)).toBe('0.000001230000');
  expect(printUnits(toUnits(5e-10, 9), 9)).toBe('0.000000001');
  expect(printUnits(toUnits(1_234_567.5, 9), 9)).toBe('1234567.500000000');
  for (const none of [-1, Number.NaN, Number.POSITIVE_INFINITY, 0]) expect(toUnits(none, 9)).toBe(0n);
});
