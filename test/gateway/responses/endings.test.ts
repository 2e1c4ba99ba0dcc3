import { describe, expect, test } from 'vitest';
import {
  answerJson,
  answerStream,
  chatChunk,
  DONE,
  event,
  partial,
  type Script,
  startFakeReplica,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection, type RawResponse } from '#testkit/raw-http.ts';
import { type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const PLAIN = '{"model":"m"}';
const STREAMED = '{"model":"m","stream":true}';

const stream = (pieces: readonly string[], last: 'cut' | 'reset' | 'nothing') =>
  partial('text/event-stream', pieces, last);
const json = (pieces: readonly string[], last: 'cut' | 'reset' | 'nothing', fields: readonly string[] = []) =>
  partial('application/json', pieces, last, fields);

/** How one request ends, in one phase of its life. */
interface Ending {
  readonly name: string;
  readonly body: string;
  readonly script: Script;
  readonly config?: StartGatewayOptions['config'];
  /** What the record says; a member that is undefined must be absent. */
  readonly record: object;
  /** The code of the error event that ends the body; null: none. Absent: the connection is destroyed. */
  readonly errorEvent?: string | null;
  readonly text?: string;
}

const idle = { timeouts: { idle: '30ms' } };
const whole = { truncated: undefined, error_type: undefined };

const endings: readonly Ending[] = [
  {
    name: 'a whole plain answer',
    body: PLAIN,
    script: answerJson({ usage: { prompt_tokens: 1 } }),
    record: { status: 200, stream: false, prompt_tokens: 1, ...whole },
    errorEvent: null,
  },
  {
    name: 'a whole stream',
    body: STREAMED,
    script: answerStream([chatChunk('x'), chatChunk('', 'stop'), usageChunk(1, 2), DONE]),
    record: { status: 200, stream: true, prompt_tokens: 1, finish_reasons: ['stop'], ...whole },
    errorEvent: null,
  },
  {
    name: 'a stream without [DONE] that ended in order',
    body: STREAMED,
    script: answerStream([chatChunk('x'), chatChunk('', 'stop')]),
    record: { status: 200, stream: true, ...whole },
    errorEvent: null,
  },
  {
    name: 'a stream that ended in order and never said that it was whole',
    body: STREAMED,
    script: answerStream([chatChunk('x')]),
    record: { status: 200, stream: true, truncated: true, error_type: undefined },
    errorEvent: null,
    text: chatChunk('x'),
  },
  {
    name: "the replica's own error",
    body: PLAIN,
    script: answerJson({ error: 'busy' }, { status: 503 }),
    record: { status: 503, stream: false, replica: 'a', truncated: undefined },
    errorEvent: null,
  },
  {
    name: "the replica's own error to a request for a stream",
    body: STREAMED,
    script: answerJson({ error: 'no such model' }, { status: 404 }),
    record: { status: 404, stream: false, replica: 'a', truncated: undefined },
    errorEvent: null,
  },
  {
    name: 'an error event in a stream that ends in order',
    body: STREAMED,
    script: answerStream([chatChunk('x'), event({ error: { message: 'x', code: 500 } }), DONE]),
    record: { status: 200, stream: true, error_type: 'upstream_error', truncated: undefined },
    errorEvent: null,
  },
  {
    name: 'an error line, as llama.cpp once sent it',
    body: STREAMED,
    script: answerStream([chatChunk('x'), 'error: {"code":500,"message":"x"}\n\n']),
    record: { status: 200, stream: true, error_type: 'upstream_error' },
    errorEvent: null,
  },
  {
    name: 'a stream that is cut between events',
    body: STREAMED,
    script: stream([chatChunk('x')], 'cut'),
    record: { status: 200, stream: true, error_type: 'upstream_failed', truncated: true },
    errorEvent: 'upstream_failed',
    text: chatChunk('x'),
  },
  {
    name: 'a stream that is reset',
    body: STREAMED,
    script: stream([], 'reset'),
    record: { status: 200, stream: true, error_type: 'upstream_failed', truncated: true },
    errorEvent: 'upstream_failed',
    text: '',
  },
  {
    name: 'a stream that is cut in the middle of an event that is held',
    body: STREAMED,
    script: stream([chatChunk('x'), 'data: {"choices":'], 'cut'),
    record: { status: 200, error_type: 'upstream_failed', truncated: true },
    errorEvent: 'upstream_failed',
    text: chatChunk('x'),
  },
  {
    name: 'a stream that is cut in the middle of an event that went out',
    body: '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
    script: stream([chatChunk('x'), 'data: {"choices":'], 'cut'),
    record: { status: 200, error_type: 'upstream_failed', truncated: true },
    errorEvent: 'upstream_failed',
    text: `${chatChunk('x')}data: {"choices":\n\n`,
  },
  {
    name: 'a stream that falls silent',
    body: STREAMED,
    script: stream([chatChunk('x')], 'nothing'),
    config: idle,
    record: { status: 200, stream: true, error_type: 'upstream_timeout', truncated: true },
    errorEvent: 'upstream_timeout',
    text: chatChunk('x'),
  },
  {
    name: 'a stream that is silent from the beginning',
    body: STREAMED,
    script: stream([], 'nothing'),
    config: idle,
    record: { status: 200, error_type: 'upstream_timeout', truncated: true, ttft_ms: undefined },
    errorEvent: 'upstream_timeout',
    text: '',
  },
  {
    name: 'an error event, then a cut',
    body: STREAMED,
    script: stream([chatChunk('x'), event({ error: { message: 'x' } })], 'cut'),
    record: { status: 200, error_type: 'upstream_error', truncated: true },
    errorEvent: 'upstream_failed',
  },
  {
    name: 'a cut after [DONE], which is no error',
    body: STREAMED,
    script: stream([chatChunk('x'), usageChunk(1, 2), DONE], 'cut'),
    record: { status: 200, prompt_tokens: 1, ...whole },
    errorEvent: null,
    text: chatChunk('x') + DONE,
  },
  {
    name: 'silence after [DONE], which is no error',
    body: STREAMED,
    script: stream([DONE], 'nothing'),
    config: idle,
    record: { status: 200, ...whole },
    errorEvent: null,
    text: DONE,
  },
  {
    name: 'a plain answer that is cut before its Content-Length',
    body: PLAIN,
    script: json(['{"usage":{"prompt_tokens":1'], 'cut', ['Content-Length', '100']),
    record: { status: 200, stream: false, error_type: 'upstream_failed', truncated: true },
  },
  {
    name: 'a plain answer in chunks that is cut',
    body: PLAIN,
    script: json(['{"usage":'], 'cut'),
    record: { status: 200, error_type: 'upstream_failed', truncated: true },
  },
  {
    name: 'a plain answer that falls silent',
    body: PLAIN,
    script: json(['{'], 'nothing', ['Content-Length', '100']),
    config: idle,
    record: { status: 200, error_type: 'upstream_timeout', truncated: true },
  },
  {
    name: 'an error answer that is cut',
    body: PLAIN,
    script: async ({ request, head, write, cut }) => {
      await request.body;
      await head(500, ['Content-Length', '100']);
      await write('oops');
      cut();
    },
    record: { status: 500, error_type: 'upstream_failed', truncated: true },
  },
  {
    name: 'a chunk size that is no number, in mid-stream',
    body: STREAMED,
    script: async ({ request, raw }) => {
      await request.body;
      const chunk = chatChunk('x');
      await raw('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
      await raw(`${chunk.length.toString(16)}\r\n${chunk}\r\nzz\r\n`);
    },
    record: { status: 200, error_type: 'upstream_failed', truncated: true },
    errorEvent: 'upstream_failed',
    text: chatChunk('x'),
  },
];

describe('every ending leaves exactly one record, and the client knows whether it got all', () => {
  test.for(endings)('$name', async (ending) => {
    await using replica = await startFakeReplica({ script: ending.script });
    await using gateway = await startGateway({ replicas: [replica], config: ending.config ?? {} });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', ending.body));

    const response = await client.readResponse();

    expectBody(response, ending);
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ model: 'm', endpoint: '/v1/chat/completions', replica: 'a', attempts: 1 });
    for (const [name, value] of Object.entries(ending.record)) {
      expect(record[name as keyof typeof record], name).toEqual(value);
    }
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
    await gateway.close();
    expect(gateway.records).toHaveLength(1);
  });

  test('a reset after [DONE], which is no error', async () => {
    const wasRead = Promise.withResolvers<void>();
    await using replica = await startFakeReplica({
      script: async ({ request, head, write, reset }) => {
        await request.body;
        await head(200, ['Content-Type', 'text/event-stream']);
        await write(DONE);
        await wasRead.promise;
        reset();
      },
    });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', STREAMED));

    await client.untilBuffered('[DONE]');
    wasRead.resolve();

    const response = await client.readResponse();
    expect(response.isComplete).toBe(true);
    expect(response.body.toString()).toBe(DONE);
    const record = await gateway.nextRecord();
    expect(record.error_type).toBeUndefined();
    expect(record.truncated).toBeUndefined();
  });
});

/** The body ends as the ending says: whole, with an error event, or by a broken connection. */
function expectBody(response: RawResponse, { errorEvent, text }: Ending): void {
  const body = response.body.toString();
  expect(response.isComplete).toBe(errorEvent !== undefined);
  if (typeof errorEvent === 'string') {
    const start = body.lastIndexOf('data: ');
    expect(body.slice(start)).toMatch(/^data: \{"error":.*\}\n\n$/);
    expect(JSON.parse(body.slice(start + 6))).toEqual({
      error: { message: expect.any(String), type: 'server_error', param: null, code: errorEvent },
    });
    if (text !== undefined) expect(body.slice(0, start)).toBe(text);
    expect(body).not.toContain('[DONE]');
  } else if (text !== undefined) {
    expect(body).toBe(text);
  }
}
