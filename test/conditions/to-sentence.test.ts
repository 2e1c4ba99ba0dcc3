import { expect, test } from 'vitest';
import { toFigureTexts, toSentence } from '../../src/conditions/to-sentence.ts';

const FIGURES = {
  why: 'text',
  count: 'count',
  share: 'share',
  age: 'seconds',
  size: 'bytes',
  factor: 'ratio',
} as const;

const say = (sentence: string, figures: Record<string, string | number>, subject = 'r1') =>
  toSentence({ sentence, figures: FIGURES }, subject, figures);

test('a sentence has its subject and its figures', () => {
  expect(say('{subject} fails {share} of {count}: {why}', { share: 0.274, count: 90, why: 'reset' })).toBe(
    'r1 fails 27 % of 90: reset',
  );
});

test('a subject with braces stands as it is', () => {
  expect(say('{subject} fails', { why: 'x' }, '{why} $& __proto__')).toBe('{why} $& __proto__ fails');
});

test('a figure that is none is left out', () => {
  expect(say('a{toString}b{why}', {})).toBe('ab');
});

test.each([
  [0, '0 s'],
  [1.4, '1 s'],
  [119, '119 s'],
  [120, '2 min'],
  [5_400, '90 min'],
  [7_200, '2 h'],
  [172_800, '2 d'],
  [-3, '0 s'],
])('%d seconds are %s', (age, text) => {
  expect(say('{age}', { age })).toBe(text);
});

test.each([
  [0, '0 %'],
  [0.004, '< 1 %'],
  [1, '100 %'],
])('a share of %d is %s', (share, text) => {
  expect(say('{share}', { share })).toBe(text);
});

test.each([
  [512, '512 B'],
  [1536, '1.5 KiB'],
  [300 * 1024 ** 2, '300 MiB'],
  [2 * 1024 ** 3, '2.0 GiB'],
])('%d bytes are %s', (size, text) => {
  expect(say('{size}', { size })).toBe(text);
});

test('a count has thousands separators, as on the page', () => {
  expect(say('{count}', { count: 1_231 })).toBe('1,231');
});

test('a ratio has one digit', () => {
  expect(say('{factor}', { factor: 1.5 })).toBe('1.5 ×');
});

test('figures are written as they are in sentences, and a figure without a value is left out', () => {
  const kinds = { name: 'text', share: 'share', age: 'seconds', size: 'bytes', more: 'count' } as const;
  expect(toFigureTexts(kinds, { name: '<b>', share: 0.274, age: 5_400, size: 2_048 })).toEqual({
    name: '<b>',
    share: '27 %',
    age: '90 min',
    size: '2.0 KiB',
  });
});
