import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseSelector } from '../../../src/comparisons/groups/selector.ts';

test.each([
  ['a', { kind: 'names', names: ['a'] }],
  ['a,b.1,a', { kind: 'names', names: ['a', 'b.1'] }],
  ['model:org/llama-3.3:70b, FP8', { kind: 'model', value: 'org/llama-3.3:70b, FP8' }],
  ['host:gpu-7.example.com', { kind: 'host', value: 'gpu-7.example.com' }],
  ['pod.label/version=v2', { kind: 'labels', labels: ['version=v2'] }],
  [
    'pod.label/app.kubernetes.io/version=v2,track=',
    { kind: 'labels', labels: ['app.kubernetes.io/version=v2', 'track='] },
  ],
])('%s is a selector', (text, expected) => {
  expect(parseSelector(text)).toEqual(expected);
});

test.each([
  ...['', ',', 'a,', 'a b', '..', 'a/b', '*', 'a\nb', 'model:', 'host:', 'x'.repeat(129)],
  ...['pod.label/', 'pod.label/a', 'pod.label/=v', 'pod.label/a!=v', 'pod.label/a in (b)', 'pod.label/a=b c'],
  ...['pod.label/a=b&limit=1', 'pod.label/A_/x=y', `pod.label/a=${'x'.repeat(64)}`],
  `pod.label/${Array.from({ length: 17 }, () => 'a=b').join()}`,
  `model:${'m'.repeat(9_000)}`,
])('%s is none', (text) => {
  expect(parseSelector(text)).toBeNull();
});

test('no text makes it throw, and what it takes for names are names', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
      const selector = parseSelector(text);
      if (selector?.kind === 'names') for (const name of selector.names) expect(name).toMatch(/^[\w.~-]+$/);
    }),
  );
});
