import { describe, expect, test } from 'vitest';
import { type AnswerTraits, isHeld, judgeHeld } from '../../../src/proxy/attempt/judge-answer.ts';

const PLAIN: AnswerTraits = {
  status: 500,
  isJson: true,
  engine: 'vllm',
  asksUsage: false,
  isRepeatable: true,
  isRetried: false,
};
const LOADING: AnswerTraits = { ...PLAIN, status: 503, engine: 'llamacpp' };
const body = (error: unknown) => Buffer.from(JSON.stringify({ error }));
const LOADS = { type: 'unavailable_error', message: 'Loading model' };

describe('an answer is held', () => {
  test.each<readonly [boolean, string, AnswerTraits]>([
    [false, 'not by default', PLAIN],
    [true, 'where its status is retried', { ...PLAIN, isRetried: true }],
    [true, 'where it may refuse our option', { ...PLAIN, asksUsage: true, status: 400 }],
    [true, 'where it may refuse our option by 422', { ...PLAIN, asksUsage: true, status: 422 }],
    [false, 'not where it refuses something else', { ...PLAIN, asksUsage: true, status: 404 }],
    [false, 'not where we asked for nothing', { ...PLAIN, status: 400 }],
    [true, 'where a llama.cpp may be loading', LOADING],
    [false, 'not where that is another engine', { ...LOADING, engine: 'vllm' }],
    [false, 'not where it is another status', { ...LOADING, status: 500 }],
    [false, 'not where it is not JSON', { ...LOADING, isJson: false }],
    [false, 'not where the request cannot be repeated', { ...LOADING, isRepeatable: false }],
  ])('%s: %s', (expected, _, traits) => {
    expect(isHeld(traits)).toBe(expected);
  });
});

describe('an answer that was held', () => {
  const refusing = { ...PLAIN, asksUsage: true, status: 400 };

  test.each<readonly [string, AnswerTraits, Buffer, boolean, string]>([
    ['is relayed by default', PLAIN, body(LOADS), true, 'relay'],
    ['says that the model loads', LOADING, body(LOADS), true, 'loading'],
    ['says that of another type', LOADING, body({ ...LOADS, type: 'other' }), true, 'relay'],
    ['says something else', LOADING, body({ ...LOADS, message: 'No slot' }), true, 'relay'],
    ['has no error', LOADING, body(undefined), true, 'relay'],
    ['is not JSON', LOADING, Buffer.from('{'), true, 'relay'],
    ['says it to another request', { ...LOADING, status: 500 }, body(LOADS), true, 'relay'],
    ['refuses our option', refusing, Buffer.from('no stream_options'), true, 'usage_refused'],
    [
      'refuses our option in its first part',
      refusing,
      Buffer.from('no stream_options'),
      false,
      'usage_refused',
    ],
    ['refuses another option', refusing, Buffer.from('no options'), true, 'relay'],
    ['refuses an option of the client', PLAIN, Buffer.from('no stream_options'), true, 'relay'],
    ['is retried', { ...PLAIN, isRetried: true }, Buffer.from('no'), true, 'status_retried'],
    ['is too long to be retried', { ...PLAIN, isRetried: true }, Buffer.from('no'), false, 'relay'],
    [
      'is retried, but says that the model loads',
      { ...LOADING, isRetried: true },
      body(LOADS),
      true,
      'loading',
    ],
  ])('%s', (_, traits, start, isWhole, expected) => {
    expect(judgeHeld(traits, start, isWhole)).toBe(expected);
  });
});
