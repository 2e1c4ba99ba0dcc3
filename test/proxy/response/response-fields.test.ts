import { expect, test } from 'vitest';
import {
  FinishReasons,
  fillIdentity,
  fillUsage,
  type ResponseFields,
  toResponseId,
} from '../../../src/proxy/response/response-fields.ts';

test('finish reasons are plain words by choice, and what is between them is unknown', () => {
  const reasons = new FinishReasons();
  const fields: ResponseFields = {};
  expect(reasons.isEmpty).toBe(true);
  for (const [index, reason] of [
    ...[
      [0.5, 'stop'],
      [-1, 'stop'],
      [128, 'stop'],
      [0, ''],
      [0, 'two words'],
      [0, 'a1'],
      [0, 'x'.repeat(33)],
    ],
  ] as const) {
    reasons.add({ index: index as number, reason: reason as string });
  }
  reasons.fill(fields);
  expect([reasons.isEmpty, fields]).toEqual([true, {}]);
  reasons.add({ index: 2, reason: 'Tool_calls' });
  reasons.add({ index: 0, reason: 'length' });
  reasons.fill(fields);
  expect([reasons.isEmpty, fields]).toEqual([false, { finish_reasons: ['length', 'unknown', 'Tool_calls'] }]);
  const many = new FinishReasons();
  many.add({ index: 127, reason: 'x'.repeat(32) });
  many.fill(fields);
  expect(fields.finish_reasons).toHaveLength(128);
});

test.each([
  [null, null],
  ['', null],
  ['resp_1', 'resp_1'],
  ['two words', null],
  ['é', null],
  ['!~'.repeat(128), '!~'.repeat(128)],
  ['x'.repeat(257), null],
])('an id is visible ASCII, up to 256 characters: %s', (id, expected) => {
  expect(toResponseId(id)).toBe(expected);
});

test('what an engine calls a response and its model is recorded as far as it is there', () => {
  const fields: ResponseFields = {};
  fillIdentity(fields, { id: null, model: null });
  fillIdentity(fields, { id: 'two words', model: '' });
  expect(fields).toEqual({});
  fillIdentity(fields, { id: 'resp_1', model: 'm' });
  expect(fields).toEqual({ response_id: 'resp_1', response_model: 'm' });
});

test('what an engine tells of tokens is recorded, figure by figure', () => {
  const none: ResponseFields = {};
  fillUsage(none, {});
  expect(none).toStrictEqual({});
  const fields: ResponseFields = {};
  fillUsage(fields, {
    promptTokens: 1,
    completionTokens: 2,
    cachedTokens: 3,
    reasoningTokens: 4,
    audioSeconds: 5,
    promptAudioTokens: 6,
    promptImageTokens: 7,
    completionAudioTokens: 8,
    cacheCreationTokens: 9,
  });
  expect(fields).toEqual({
    prompt_tokens: 1,
    completion_tokens: 2,
    cached_tokens: 3,
    reasoning_tokens: 4,
    audio_seconds: 5,
    prompt_audio_tokens: 6,
    prompt_image_tokens: 7,
    completion_audio_tokens: 8,
    cache_creation_tokens: 9,
  });
});
