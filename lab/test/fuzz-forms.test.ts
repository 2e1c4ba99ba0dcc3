import { expect, test } from 'vitest';
import { FORM_TYPE, formOf } from '#testkit/reading/form.ts';
import { compare } from '../fuzz-forms/compare.ts';
import { decodeForms, encodeForms, type Form, type ReadPart } from '../fuzz-forms/form.ts';
import { generateForm } from '../fuzz-forms/generate.ts';
import { readOurs } from '../fuzz-forms/read-ours.ts';

const FORM: Form = { contentType: FORM_TYPE, pieces: [formOf([{ name: 'model', value: 'a' }])] };
const MODEL: ReadPart = { name: 'model', filename: null, content: 'a' };
const OURS = { model: 'a', promptChars: undefined };

/** The comparison with two parsers that find these parts. */
const compareWith = (...readings: readonly (readonly ReadPart[] | null)[]) =>
  compare(FORM, OURS, new Map(readings.map((parts, index) => [`parser ${index}`, parts])));

// The parsers themselves run beside it in the lab: npm run lab -- fuzz-forms.
test('generated forms are read the same however they are cut, many of them accepted and many refused', () => {
  const readings = Array.from({ length: 3_000 }, (_, index) => readOurs(generateForm(7, index)));
  const accepted = readings.filter((reading) => reading !== null);
  expect(accepted.length).toBeGreaterThan(1_000);
  expect(accepted.length).toBeLessThan(2_000);
  expect(accepted.filter(({ model }) => model !== null).length).toBeGreaterThan(300);
});

test('a form of an index is the same each time, and in the file for the parsers', () => {
  const forms = Array.from({ length: 50 }, (_, index) => generateForm(1, index));
  expect(Array.from({ length: 50 }, (_, index) => generateForm(1, index))).toEqual(forms);
  expect(decodeForms(encodeForms(forms))).toEqual(forms);
});

test('an accepted form that every parser reads alike is no finding, nor one that a parser refuses', () => {
  expect(compareWith([MODEL], [MODEL])).toEqual({ verdict: 'alike', difference: null });
  expect(compareWith([MODEL], null)).toEqual({ verdict: 'peer_refused', difference: null });
});

test.each<[string, readonly ReadPart[]]>([
  ['another model', [{ ...MODEL, content: 'b' }]],
  ['no model', []],
  ['two models', [MODEL, MODEL]],
  ['a model that is a file', [{ ...MODEL, filename: 'a' }]],
  ['a prompt that we do not read', [MODEL, { ...MODEL, name: 'prompt' }]],
  ['one more part', [MODEL, { ...MODEL, name: 'x' }]],
])('a form in which one parser reads %s is a finding', (_, parts) => {
  expect(compareWith([MODEL], parts).difference).toEqual(expect.any(String));
});

test('a refused form counts as split if the parsers disagree about it', () => {
  const verdictOf = (...readings: readonly (readonly ReadPart[] | null)[]) =>
    compare(FORM, null, new Map(readings.map((parts, index) => [`${index}`, parts]))).verdict;
  expect([verdictOf([MODEL], []), verdictOf([MODEL], null)]).toEqual(['split', 'split']);
  expect([verdictOf([MODEL], [MODEL]), verdictOf(null, null)]).toEqual(['refused', 'refused']);
});
