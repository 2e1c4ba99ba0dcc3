import { describe, expect, test } from 'vitest';
import { readCapture } from '#testkit/reading/captures.ts';
import { endpointAt } from '#testkit/reading/response-reading.ts';
import { cutsOf, readStream, readWhole, typedEvent } from './stream-facts.ts';

const PATH = '/v1/messages';
const start = (usage: object) =>
  typedEvent({ type: 'message_start', message: { id: 'msg_1', model: 'm', stop_reason: null, usage } });
const blockStart = (content_block: object) =>
  typedEvent({ type: 'content_block_start', index: 0, content_block });
const blockDelta = (delta: object) => typedEvent({ type: 'content_block_delta', index: 0, delta });
const text = (written: string) => blockDelta({ type: 'text_delta', text: written });
const messageDelta = (usage: object, stop_reason: unknown = 'end_turn') =>
  typedEvent({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage });
const STOP = typedEvent({ type: 'message_stop' });

describe('a message that an engine streams', () => {
  test('of llama.cpp counts the cached tokens of message_start into the prompt', () => {
    const { record, ...rest } = readStream(PATH, [readCapture('llama/messages-stream').body]);
    expect(record).toEqual({
      prompt_tokens: 11,
      cached_tokens: 10,
      completion_tokens: 8,
      response_id: 'chatcmpl-Yd0o2tLzOjYAM5Q1jboeGEKl9lUYf8go',
      response_model: 'tiny',
      finish_reasons: ['max_tokens'],
      usage_source: 'final',
    });
    expect(rest).toMatchObject({ isDone: true, isWhole: true, hasError: false });
  });

  test('of vLLM tells its cached tokens at its end', () => {
    expect(readStream(PATH, [readCapture('vllm/messages-stream').body]).record).toEqual({
      prompt_tokens: 11,
      cached_tokens: 0,
      cache_creation_tokens: 0,
      completion_tokens: 8,
      response_id: 'chatcmpl-8b855979c5163ef4',
      response_model: 'tiny',
      finish_reasons: ['max_tokens'],
      usage_source: 'final',
    });
  });

  test.each(['llama', 'vllm'])('of %s says the same wherever its reads are cut', (engine) => {
    const { body } = readCapture(`${engine}/messages-stream`);
    const expected = readStream(PATH, [body]);
    for (const reads of cutsOf(body)) {
      expect(readStream(PATH, reads)).toEqual({ ...expected, firstOutputMs: expect.any(Number) });
    }
  });
});

describe('the usage of a message', () => {
  test('is the sum of what was cached, written to the cache, and neither', () => {
    const usage = {
      input_tokens: 3,
      cache_creation_input_tokens: 32,
      cache_read_input_tokens: 64,
      output_tokens: 1,
    };
    expect(readStream(PATH, [start(usage), messageDelta({ output_tokens: 5 }), STOP]).record).toMatchObject({
      prompt_tokens: 99,
      cached_tokens: 64,
      cache_creation_tokens: 32,
      completion_tokens: 5,
    });
  });

  test('is cumulative: the last message_delta counts, whichever figures it repeats', () => {
    const events = [
      start({ input_tokens: 11, output_tokens: 0 }),
      messageDelta({ output_tokens: 3 }, null),
      messageDelta({ input_tokens: 3, cache_read_input_tokens: 8, output_tokens: 5 }),
    ];
    expect(readStream(PATH, events).record).toMatchObject({
      prompt_tokens: 11,
      cached_tokens: 8,
      completion_tokens: 5,
    });
  });

  test('of a stream that breaks off has no completion tokens: message_start does not know them', () => {
    const { record } = readStream(PATH, [start({ input_tokens: 11, output_tokens: 1 }), text('x')]);
    expect(record.prompt_tokens).toBe(11);
    expect(record.completion_tokens).toBeUndefined();
  });

  test('of zeros in message_start is unknown', () => {
    const { record } = readStream(PATH, [start({ input_tokens: 0, output_tokens: 0 }), text('x')]);
    expect(record.prompt_tokens).toBeUndefined();
  });
});

describe('the first output of a message', () => {
  test.each([
    ['text', text('x')],
    ['thinking', blockDelta({ type: 'thinking_delta', thinking: 'x' })],
    ['input of a tool', blockDelta({ type: 'input_json_delta', partial_json: '{' })],
    ['the call of a tool', blockStart({ type: 'tool_use', id: 't', name: 'f', input: {} })],
    ['text of a new block', blockStart({ type: 'text', text: 'x' })],
    ['redacted thinking', blockStart({ type: 'redacted_thinking', data: 'x' })],
  ])('is %s', (_, output) => {
    const before = [
      start({ input_tokens: 1, output_tokens: 1 }),
      typedEvent({ type: 'ping' }),
      blockStart({ type: 'text', text: '' }),
      text(''),
      blockDelta({ type: 'signature_delta', signature: 'x' }),
    ];
    expect(readStream(PATH, [...before, output]).firstOutputMs).toBe(before.length + 1);
    expect(readStream(PATH, before).firstOutputMs).toBeUndefined();
  });

  test('is found behind events that differ only in their text', () => {
    expect(readStream(PATH, [text(''), text(''), text('x'), text('y')]).firstOutputMs).toBe(3);
  });
});

describe('the end of a message', () => {
  test('is message_stop: a stop reason alone is not enough', () => {
    const events = [start({ input_tokens: 1 }), text('x'), messageDelta({ output_tokens: 1 })];
    expect(readStream(PATH, events)).toMatchObject({ isDone: false, isWhole: false });
    expect(readStream(PATH, [...events, STOP])).toMatchObject({ isDone: true, isWhole: true });
  });

  test.each([
    typedEvent({ type: 'error', error: { type: 'overloaded_error', message: 'x' } }),
    // As llama.cpp writes it: the type of the event is in its line alone.
    'event: error\ndata: {"code":500,"message":"x","type":"server_error"}\n\n',
  ])('is an error: %j', (event) => {
    expect(readStream(PATH, [text('x'), event])).toMatchObject({ isDone: false, hasError: true });
  });
});

describe('an event of a message that means harm', () => {
  test.each([
    'data: {"type":"message_stop","type":"ping"}\n\n',
    'data: {"type":"message_stop"\n\n',
    'data: {"type":"content_block_delta","delta":{"text":"{\\"type\\":\\"message_stop\\"}"}}\n\n',
    'data: {"delta":{"type":"message_stop"}}\n\n',
    'data: []\n\n',
    'data: [DONE]\n\n',
    'event: message_stop\ndata: 7\n\n',
  ])('is not the end: %s', (event) => {
    expect(readStream(PATH, [event])).toMatchObject({ record: {}, isDone: false, hasError: false });
  });

  test.each([
    start({
      input_tokens: -1,
      output_tokens: '7',
      cache_read_input_tokens: 1.5,
      __proto__: { input_tokens: 7 },
    }),
    messageDelta([7], 'not a word'),
    messageDelta({ output_tokens: 2 ** 60 }, { a: 1 }),
    typedEvent({ type: 'message_delta', delta: 'x', usage: 'x' }),
    typedEvent({ type: 'message_start', message: [{ usage: { input_tokens: 7 } }] }),
  ])('has no figures: %#', (event) => {
    const { response_id, response_model, ...rest } = readStream(PATH, [event]).record;
    expect(rest).toEqual({ usage_source: 'absent' });
  });
});

describe('a whole message', () => {
  const BODY = Buffer.from(
    JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: '"usage":{"input_tokens":7}' }],
      stop_reason: 'tool_use',
      usage: {
        input_tokens: 1,
        cache_read_input_tokens: 10,
        cache_creation_input_tokens: 0,
        output_tokens: 8,
      },
    }),
  );

  test('says usage, ids and its stop reason, wherever it is cut', () => {
    for (const reads of cutsOf(BODY)) {
      expect(readWhole(PATH, reads)).toEqual({
        prompt_tokens: 11,
        cached_tokens: 10,
        cache_creation_tokens: 0,
        completion_tokens: 8,
        response_id: 'msg_1',
        response_model: 'm',
        finish_reasons: ['tool_use'],
      });
    }
  });

  test('of the count of tokens says nothing: it is no usage', () => {
    expect(readWhole('/v1/messages/count_tokens', ['{"input_tokens":11}'])).toEqual({});
  });
});

describe('an error of the gateway', () => {
  test.each([
    ['invalid_api_key', 'authentication_error'],
    ['model_not_found', 'not_found_error'],
    ['missing_model', 'invalid_request_error'],
    ['request_too_large', 'request_too_large'],
    ['all_replicas_drained', 'overloaded_error'],
    ['no_replica_reachable', 'api_error'],
    ['upstream_timeout', 'timeout_error'],
  ] as const)('%s has the type %s', (code, type) => {
    const { toErrorBody, toErrorEvent } = endpointAt(PATH);
    const body = toErrorBody(code);
    expect(JSON.parse(body)).toEqual({ type: 'error', error: { type, message: expect.any(String), code } });
    expect(toErrorEvent(code)).toBe(`event: error\ndata: ${body}\n\n`);
  });
});
