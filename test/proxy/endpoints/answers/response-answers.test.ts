import { describe, expect, test } from 'vitest';
import { readCapture } from '#testkit/reading/captures.ts';
import { cutsOf, readStream, readWhole, typedEvent } from './stream-facts.ts';

const PATH = '/v1/responses';
const delta = (text: string, type = 'response.output_text.delta') => typedEvent({ type, delta: text });
const ended = (type: string, response: object) => typedEvent({ type, response });

describe('a response that an engine streams', () => {
  test('of llama.cpp says usage, ids, timings and its end', () => {
    const { record, ...rest } = readStream(PATH, [readCapture('llama/responses-stream').body]);
    expect(record).toMatchObject({
      prompt_tokens: 11,
      completion_tokens: 8,
      cached_tokens: 10,
      response_id: 'resp_9omFxbnCJXmUmy5d0L8nqKTjSQn44q5G',
      response_model: 'tiny',
      finish_reasons: ['completed'],
    });
    expect(record.timings).toMatchObject({ cache_n: 10, predicted_n: 8 });
    expect(rest).toMatchObject({ isDone: true, isWhole: true, hasError: false });
  });

  test('of vLLM says why it is incomplete, although its last event says completed', () => {
    const { record, isDone } = readStream(PATH, [readCapture('vllm/responses-stream').body]);
    expect(record).toEqual({
      prompt_tokens: 11,
      completion_tokens: 8,
      cached_tokens: 0,
      cache_creation_tokens: 0,
      reasoning_tokens: 0,
      response_id: 'resp_a52bf61b06981d50',
      response_model: 'tiny',
      finish_reasons: ['max_output_tokens'],
      usage_source: 'final',
    });
    expect(isDone).toBe(true);
  });

  test.each(['llama', 'vllm'])('of %s says the same wherever its reads are cut', (engine) => {
    const { body } = readCapture(`${engine}/responses-stream`);
    const expected = readStream(PATH, [body]);
    for (const reads of cutsOf(body)) {
      expect(readStream(PATH, reads)).toEqual({ ...expected, firstOutputMs: expect.any(Number) });
    }
  });
});

describe('the timings of vLLM', () => {
  const metrics = { queue_time: 0.5, speculative_decoding: { num_draft_tokens: 129 } };
  const timings = { queue_time: 0.5, 'speculative_decoding.num_draft_tokens': 129 };

  test('are in the response object, whole or at the end of a stream', () => {
    const response = { id: 'resp_1', status: 'completed', metrics };
    const stream = ended('response.created', { id: 'resp_1' }) + ended('response.completed', response);
    expect(readStream(PATH, [Buffer.from(stream)]).record.timings).toEqual(timings);
    expect(readWhole(PATH, [JSON.stringify(response)]).timings).toEqual(timings);
  });

  test.each(['1', 'null', '"x"', '[]'])('are none if they are no object: %s', (value) => {
    expect(readWhole(PATH, [`{"id":"r","metrics":${value}}`])).not.toHaveProperty('timings');
  });
});

describe('the first output of a response', () => {
  test.each([
    ['text', delta('x')],
    ['reasoning', delta('x', 'response.reasoning_text.delta')],
    ['a summary of reasoning', delta('x', 'response.reasoning_summary_text.delta')],
    ['a refusal', delta('x', 'response.refusal.delta')],
    ['arguments of a call', delta('{', 'response.function_call_arguments.delta')],
    [
      'the name of a call',
      typedEvent({ type: 'response.output_item.added', item: { type: 'function_call', name: 'f' } }),
    ],
    ['a delta that is an object', typedEvent({ type: 'response.x.delta', delta: { a: 1 } })],
  ])('is %s', (_, output) => {
    const before = [
      ended('response.created', { id: 'r', status: 'in_progress', output: [{ delta: 'x' }], usage: null }),
      typedEvent({ type: 'response.output_item.added', item: { type: 'message', content: [] } }),
      typedEvent({ type: 'response.content_part.added', part: { type: 'output_text', text: 'x' } }),
      delta(''),
    ];
    expect(readStream(PATH, [...before, output]).firstOutputMs).toBe(before.length + 1);
    expect(readStream(PATH, before).firstOutputMs).toBeUndefined();
  });

  test('is found behind events that differ only in their text', () => {
    const { firstOutputMs } = readStream(PATH, [delta(''), delta(''), delta(''), delta('x'), delta('y')]);
    expect(firstOutputMs).toBe(4);
  });

  test('is no text that is told again when it is complete', () => {
    const done = typedEvent({ type: 'response.output_text.done', text: 'x', delta: 'x' });
    expect(readStream(PATH, [done]).firstOutputMs).toBeUndefined();
  });
});

describe('the end of a response', () => {
  test.each([
    ['response.completed', { status: 'completed' }, 'completed', false],
    [
      'response.incomplete',
      { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
      'content_filter',
      false,
    ],
    ['response.failed', { status: 'failed', error: { code: 'server_error', message: 'x' } }, 'failed', true],
    ['response.cancelled', { status: 'cancelled', incomplete_details: null }, 'cancelled', false],
  ] as const)('%s', (type, response, reason, hasError) => {
    const facts = readStream(PATH, [delta('x'), ended(type, response)]);
    expect(facts).toMatchObject({ isDone: true, isWhole: true, hasError });
    expect(facts.record.finish_reasons).toEqual([reason]);
  });

  test('is missing from a stream that stops after its text', () => {
    const done = typedEvent({ type: 'response.output_item.done', item: { status: 'completed' } });
    expect(readStream(PATH, [delta('x'), done])).toMatchObject({ isDone: false, isWhole: false });
  });

  test.each([
    typedEvent({ type: 'error', code: 'server_error', message: 'x', param: null }),
    'data: {"error":{"code":500,"message":"x","type":"server_error"}}\n\n',
    'event: error\ndata: {"code":500}\n\n',
  ])('is an error: %j', (event) => {
    expect(readStream(PATH, [delta('x'), event])).toMatchObject({ isDone: false, hasError: true });
  });
});

describe('an event of a response that means harm', () => {
  test.each([
    'data: {"type":"response.completed","response":{"usage":{"input_tokens":-1,"output_tokens":1.5}}}\n\n',
    'data: {"type":"response.completed","response":{"usage":"7","id":7,"model":[],"status":{}}}\n\n',
    'data: {"type":"response.completed","response":[{"usage":{"input_tokens":7}}]}\n\n',
    `data: {"type":"response.completed","response":{"id":"${'x'.repeat(2000)}","status":"not a word"}}\n\n`,
    'data: {"type":"response.completed","response":{"__proto__":{"usage":{"input_tokens":7}}}}\n\n',
  ])('says nothing but that it is the end: %#', (event) => {
    expect(readStream(PATH, [event])).toMatchObject({ record: {}, isDone: true, hasError: false });
  });

  test.each([
    'data: {"type":"response.completed"\n\n',
    'data: ["response.completed"]\n\n',
    'data: {"type":"response.output_text.delta","delta":{"type":"response.completed"}}\n\n',
    'data: {"type":{"a":"response.completed"}}\n\n',
    'data: [DONE]\n\n',
  ])('is not the end: %s', (event) => {
    expect(readStream(PATH, [event])).toMatchObject({ isDone: false, hasError: false });
  });

  test('does not take text for usage', () => {
    const text = '"response":{"usage":{"input_tokens":7}}';
    expect(readStream(PATH, [delta(text)]).record).toEqual({ usage_source: 'absent' });
  });

  test('is not recorded as an id if it could be text; the model is shown without control characters', () => {
    const { record } = readStream(PATH, [
      ended('response.created', { id: 'Once upon', model: 'a\u202eb\n' }),
    ]);
    expect(record).toEqual({ response_model: 'ab', usage_source: 'absent' });
  });
});

describe('a whole response', () => {
  test.each([
    [
      'llama',
      { cached_tokens: 0, completion_tokens: 8, response_id: 'resp_P8vIb0ndCpF2mWNNtldFQenjjkuGFcsT' },
    ],
    [
      'vllm',
      { cached_tokens: 0, completion_tokens: 6, reasoning_tokens: 0, response_id: 'resp_b522c9bb3055d2f6' },
    ],
  ] as const)('of %s says usage, ids and its status, wherever it is cut', (engine, expected) => {
    const { body } = readCapture(`${engine}/responses`);
    for (const reads of cutsOf(body)) {
      expect(readWhole(PATH, reads)).toMatchObject({
        prompt_tokens: 11,
        response_model: 'tiny',
        finish_reasons: ['completed'],
        ...expected,
      });
    }
  });

  test('that is queued has no finish reason', () => {
    expect(readWhole(PATH, ['{"id":"r","status":"queued","usage":null}'])).toEqual({ response_id: 'r' });
  });
});
