import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  answerJson,
  answerStream,
  chatChunk,
  DONE,
  event,
  type FakeReplica,
  type Script,
  startFakeReplica,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const CHAT = '/v1/chat/completions';
const STREAMED = '{"model":"m","stream":true}';
const ERROR = event({ error: { message: 'overloaded', type: 'server_error', code: 'x' } });

/** Sends one request to a gateway before a replica with this script, and returns all that came back. */
async function ask(script: Script, body: string | Buffer = STREAMED, engine = 'openai') {
  await using replica = await startFakeReplica({ script });
  await using gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, engine }] });
  using client = await RawConnection.open(gateway.url);
  client.write(postBytes(CHAT, body, ['Connection: close']));
  const raw = (await client.readToClose()).toString('latin1');
  const record = await gateway.nextRecord();
  const bodyStart = raw.indexOf('\r\n\r\n') + 4;
  return { head: raw.slice(0, bodyStart), raw, text: unchunked(raw.slice(bodyStart)), record, replica };
}

/** The data of a chunked body; any other body as it is. */
function unchunked(body: string): string {
  let text = '';
  for (let rest = body; ; ) {
    const match = /^([0-9a-f]+)\r\n/.exec(rest);
    if (match?.[1] === undefined) return text === '' ? body : text;
    const size = Number.parseInt(match[1], 16);
    text += rest.slice(match[0].length, match[0].length + size);
    rest = rest.slice(match[0].length + size + 2);
    if (size === 0) return text;
  }
}

const sendAs =
  (status: number, fields: readonly string[], body: string | Buffer): Script =>
  async ({ request, head, end }) => {
    await request.body;
    await head(status, fields);
    end(body);
  };

describe('an answer that is not what was asked for', () => {
  test.for([400, 429, 503])(
    'an event stream with status %i is relayed, its error is noted',
    async (status) => {
      const { head, text, record } = await ask(sendAs(status, ['Content-Type', 'text/event-stream'], ERROR));

      expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(text).toBe(ERROR);
      expect(record).toMatchObject({ status, stream: true, error_type: 'upstream_error' });
      expect(record.truncated).toBeUndefined();
    },
  );

  test('JSON instead of a stream is relayed, its usage is read, and there is no first token', async () => {
    const body = JSON.stringify({
      choices: [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 1 },
    });
    const { text, record } = await ask(answerJson(body));

    expect(text).toBe(body);
    expect(record).toMatchObject({ status: 200, stream: false, prompt_tokens: 3, finish_reasons: ['stop'] });
    expect(record.ttft_ms).toBeUndefined();
  });

  test('a stream that was not asked for is relayed as one, its usage chunk included', async () => {
    const { text, record } = await ask(
      answerStream([chatChunk('x', 'stop'), usageChunk(3, 1), DONE]),
      '{"model":"m"}',
    );

    expect(text).toBe(chatChunk('x', 'stop') + usageChunk(3, 1) + DONE);
    expect(record).toMatchObject({ stream: true, prompt_tokens: 3 });
  });

  test('204 has no body, for the client as for the replica', async () => {
    const { head, text, record } = await ask(sendAs(204, [], ''));

    expect(head).toMatch(/^HTTP\/1.1 204 /);
    expect(text).toBe('');
    expect(record).toMatchObject({ status: 204, stream: false });
    expect(record.error_type).toBeUndefined();
  });

  test.for([301, 302, 303, 307, 308])('a redirect %i is relayed, not followed', async (status) => {
    const { head, record, replica } = await ask(sendAs(status, ['Location', '/v2/elsewhere'], 'gone'));

    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head).toContain('\r\nLocation: /v2/elsewhere\r\n');
    expect(replica.requests).toHaveLength(1);
    expect(record).toMatchObject({ status, attempts: 1 });
  });
});

describe('the framing of an answer', () => {
  test('trailers are relayed with their bytes', async () => {
    const script: Script = async ({ request, raw }) => {
      await request.body;
      await raw(
        Buffer.from(
          'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n' +
            '2\r\n{}\r\n0\r\nX-Sum: caf\u00c3\u00a9 \u00ff\r\n\r\n',
          'latin1',
        ),
      );
    };
    const { raw, record } = await ask(script, '{"model":"m"}');

    expect(raw).toContain('\r\n0\r\nX-Sum: caf\u00c3\u00a9 \u00ff\r\n');
    expect(record.status).toBe(200);
  });

  test('early hints before the answer are not the answer', async () => {
    const script: Script = async ({ request, raw }) => {
      await request.body;
      await raw('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n');
      await raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}');
    };
    const { head, text, record } = await ask(script);

    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(text).toBe('{}');
    expect(record).toMatchObject({ status: 200, attempts: 1 });
  });

  test('100 Continue, which nobody asked for, is passed over', async () => {
    const script: Script = async ({ request, raw }) => {
      await request.body;
      await raw('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
    };
    const { head, record } = await ask(script);

    expect(head).toMatch(/^HTTP\/1.1 200 /);
    expect(record).toMatchObject({ status: 200, attempts: 1, replica: 'a' });
  });

  test('bytes beyond the Content-Length do not reach the client', async () => {
    const script: Script = async ({ request, raw, cut }) => {
      await request.body;
      await raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}{"more":1}');
      cut();
    };
    const { text, record } = await ask(script, '{"model":"m"}');

    expect(text).toBe('{}');
    expect(record).toMatchObject({ status: 200, attempts: 1 });
    expect(record.truncated).toBeUndefined();
  });

  test('an answer before the body was read is relayed', async () => {
    const big = JSON.stringify({ model: 'm', prompt: 'x'.repeat(8_000_000) });
    const script: Script = async ({ head, end }) => {
      await head(413, ['Content-Type', 'application/json']);
      end('{"error":"too long"}');
    };
    const { head, text, record } = await ask(script, big);

    expect(head).toMatch(/^HTTP\/1.1 413 /);
    expect(text).toBe('{"error":"too long"}');
    expect(record).toMatchObject({ status: 413, attempts: 1 });
    expect(record.error_type).toBeUndefined();
  });
});

describe('a replica that compresses although it was asked not to', () => {
  const stream = chatChunk('x', 'stop') + usageChunk(3, 1) + DONE;

  test('its stream is relayed as it is and not read; usage is asked of it no more', async () => {
    const compressed = gzipSync(stream);
    await using replica = await startFakeReplica({
      script: sendAs(200, ['Content-Type', 'text/event-stream', 'Content-Encoding', 'gzip'], compressed),
    });
    await using gateway = await startGateway({ replicas: [replica] });

    for (let i = 0; i < 2; i++) {
      const response = await gateway.chat({ stream: true });
      expect(await response.text()).toBe(stream);
      const record = await gateway.nextRecord();
      expect(record).toMatchObject({ status: 200, stream: true });
      expect(record.prompt_tokens).toBeUndefined();
      expect(record.truncated).toBeUndefined();
    }

    expect(await bodiesOf(replica)).toEqual([
      expect.stringContaining('include_usage'),
      expect.not.stringContaining('include_usage'),
    ]);
  });

  test('its JSON is relayed as it is; the record has no usage', async () => {
    const body = gzipSync('{"usage":{"prompt_tokens":3,"completion_tokens":1}}');
    const { text, record } = await ask(
      sendAs(200, ['Content-Type', 'application/json', 'Content-Encoding', 'gzip'], body),
      '{"model":"m"}',
    );

    expect(text).toContain(body.toString('latin1'));
    expect(record.status).toBe(200);
    expect(record.prompt_tokens).toBeUndefined();
  });
});

describe('the end of a stream', () => {
  test('in order, but without [DONE] and finish reason: the bytes as they are, the record truncated', async () => {
    const { text, raw, record } = await ask(answerStream([chatChunk('x')]));

    expect(text).toBe(chatChunk('x'));
    expect(raw.endsWith('0\r\n\r\n')).toBe(true);
    expect(record).toMatchObject({ status: 200, stream: true, truncated: true });
    expect(record.error_type).toBeUndefined();
  });

  test.for([
    ['[DONE]', DONE],
    ['a finish reason', chatChunk('', 'length')],
  ] as const)('with %s it is whole', async ([, last]) => {
    const { record } = await ask(answerStream([chatChunk('x'), last]));

    expect(record.truncated).toBeUndefined();
    expect(record.error_type).toBeUndefined();
  });

  test('a flat error is an error, too', async () => {
    const flat = event({ object: 'error', message: 'x', type: 'BadRequestError', param: null, code: 400 });
    const { text, record } = await ask(answerStream([chatChunk('x'), flat, DONE]));

    expect(text).toBe(chatChunk('x') + flat + DONE);
    expect(record).toMatchObject({ status: 200, error_type: 'upstream_error' });
  });

  test('a break while a finishing event is held: it goes out, then the error', async () => {
    const script: Script = async ({ request, head, write, reset }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      await write(chatChunk('x', 'stop'));
      reset();
    };
    const { text, record } = await ask(script, STREAMED, 'vllm');

    expect(text.startsWith(chatChunk('x', 'stop'))).toBe(true);
    expect(text.slice(chatChunk('x', 'stop').length)).toMatch(
      /^data: \{"error":.*"upstream_failed".*\}\n\n$/,
    );
    expect(record).toMatchObject({
      error_type: 'upstream_failed',
      truncated: true,
      finish_reasons: ['stop'],
    });
  });

  test('a break in the middle of the usage chunk: nothing of it goes out', async () => {
    const script: Script = async ({ request, head, write, cut }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      await write(chatChunk('x', 'stop'));
      await write(usageChunk(3, 1).slice(0, -20));
      cut();
    };
    const { text, record } = await ask(script);

    expect(text).toMatch(/^data: .*\n\ndata: \{"error":.*\}\n\n$/);
    expect(text).not.toContain('usage');
    expect(record).toMatchObject({ error_type: 'upstream_failed', truncated: true });
  });
});

async function bodiesOf(replica: FakeReplica): Promise<string[]> {
  return await Promise.all(replica.requests.map(async ({ body }) => (await body).toString()));
}
