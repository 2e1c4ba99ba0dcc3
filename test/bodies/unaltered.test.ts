import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, toChunks } from '#testkit/raw-http.ts';
import { runs } from '#testkit/runs.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { bodyWith } from './generated-json.ts';

const CHAT = '/v1/chat/completions';
/** Endpoints whose requests are never changed. */
const UNTOUCHED = [
  ...['/v1/embeddings', '/v1/responses', '/v1/messages', '/v1/messages/count_tokens'],
  ...['/v1/rerank', '/score', '/classify', '/pooling', '/tokenize', '/detokenize'],
];
const ENDPOINTS = [CHAT, '/v1/completions', ...UNTOUCHED] as const;
const ALL_ON = {
  endpoints: ['responses', 'messages', 'rerank', 'score', 'classify', 'pooling', 'tokenize', 'detokenize'],
};
const RUNS = { numRuns: runs(150) };
const INSERTED = ',"stream_options":{"include_usage":true}';

/** What the replica gets for what the client sends. */
async function relay(gateway: StartedGateway, replica: FakeReplica, request: Buffer): Promise<Buffer> {
  const response = await exchangeRaw(gateway.url, request);
  expect(response.status).toBe(200);
  const received = await replica.nextRequest();
  const body = await received.body;
  expect(received.header('content-length')).toEqual([String(body.length)]);
  return body;
}

/** A POST whose body comes in HTTP chunks of these sizes, in turn. */
function chunkedPost(path: string, body: Buffer, sizes: readonly number[]): Buffer {
  const head = Buffer.from(`POST ${path} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n`);
  return Buffer.concat([head, ...toChunks(body, (_at, index) => sizes[index % sizes.length] ?? 1)]);
}

const insertBeforeClosingBrace = (text: string) => {
  const brace = text.lastIndexOf('}');
  return text.slice(0, brace) + INSERTED + text.slice(brace);
};

describe('the body of a generated request', () => {
  test('reaches the replica byte for byte', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: ALL_ON });
    const body = bodyWith([['"model"', '"m"']]);
    const sizes = fc.option(fc.array(fc.integer({ min: 1, max: 4000 }), { minLength: 1, maxLength: 9 }));

    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...ENDPOINTS), body, sizes, async (path, text, chunkSizes) => {
        const bytes = Buffer.from(text);
        const request = chunkSizes === null ? postBytes(path, bytes) : chunkedPost(path, bytes, chunkSizes);
        expect((await relay(gateway, replica, request)).toString()).toBe(text);
      }),
      RUNS,
    );
  });

  test('that asks for a stream gets include_usage before its closing brace, and is the same otherwise', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const body = bodyWith([
      ['"model"', '"m"'],
      ['"stream"', 'true'],
    ]);

    await fc.assert(
      fc.asyncProperty(fc.constantFrom(CHAT, '/v1/completions'), body, async (path, text) => {
        const received = await relay(gateway, replica, postBytes(path, text));
        expect(received.toString()).toBe(insertBeforeClosingBrace(text));
      }),
      RUNS,
    );
  });

  test('that asks for a stream is the same where usage is not asked for', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: ALL_ON });
    const body = bodyWith([
      ['"model"', '"m"'],
      ['"stream"', 'true'],
    ]);

    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...UNTOUCHED), body, async (path, text) => {
        expect((await relay(gateway, replica, postBytes(path, text))).toString()).toBe(text);
      }),
      RUNS,
    );
  });

  test('that has stream_options is changed within their value only', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const place = '"the place of the value"';
    const body = bodyWith([
      ['"model"', '"m"'],
      ['"stream"', 'true'],
      ['"stream_options"', place],
    ]);
    const change = fc.constantFrom(
      ['null', '{"include_usage":true}'],
      ['{}', '{"include_usage":true}'],
      ['{ }', '{ "include_usage":true}'],
      ['{"x":[1.0,{"include_usage":null}]\n}', '{"x":[1.0,{"include_usage":null}]\n,"include_usage":true}'],
      ['{"include_usage" : false}', '{"include_usage" : true}'],
      [
        '{"include_usage":1e3,"include\\u005fusage":null}',
        '{"include_usage":true,"include\\u005fusage":true}',
      ],
      ['{"include_usage":true}', '{"include_usage":true}'],
      ['"yes"', '"yes"'],
      ['[]', '[]'],
    );

    await fc.assert(
      fc.asyncProperty(body, change, async (text, [from = '', to = '']) => {
        const received = await relay(
          gateway,
          replica,
          postBytes(
            CHAT,
            text.replace(place, () => from),
          ),
        );
        expect(received.toString()).toBe(text.replace(place, () => to));
      }),
      RUNS,
    );
  });
});

describe('a large body', () => {
  const toBody = (sizeBytes: number, stream: boolean) => {
    const head = `{"model":"m","messages":[{"role":"user","content":"`;
    const tail = `"}],"stream":${stream}}`;
    return head + 'é'.repeat(50) + 'x'.repeat(sizeBytes - head.length - tail.length - 100) + tail;
  };
  /** At night the default. */
  const limitMiB = runs(32);
  const limitBytes = limitMiB * 1024 * 1024;
  const config = { limits: { body: `${limitMiB}MiB` } };
  const sizes = [60_000, 64 * 1024 + 1, 128 * 1024, 128 * 1024 + 1, 1_000_000, limitBytes];

  test.for(sizes)('of %i bytes reaches the replica byte for byte', async (sizeBytes) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config });
    for (const stream of [false, true]) {
      const text = toBody(sizeBytes, stream);
      const received = await relay(gateway, replica, postBytes(CHAT, text));
      const expected = Buffer.from(stream ? insertBeforeClosingBrace(text) : text);
      expect(received.equals(expected)).toBe(true);
      expect(await gateway.nextRecord()).toMatchObject({ status: 200, model: 'm', attempts: 1 });
    }
  });

  test('above the limit is refused', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config });
    const response = await gateway.post(CHAT, toBody(limitBytes + 1, false));
    expect(response.status).toBe(413);
    expect(replica.requests).toEqual([]);
  });

  test('of 200,000 chunks of one byte arrives whole', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const text = toBody(200_000, false);
    const received = await relay(gateway, replica, chunkedPost(CHAT, Buffer.from(text), [1]));
    expect(received.equals(Buffer.from(text))).toBe(true);
  });

  test.for([
    [400, 'invalid_json', '{"model":"m","messages":[[0]'],
    [400, 'large_stream_options', `{"model":"m","stream_options":{"a":"`],
    [400, 'missing_model', '{"model":["m"],"messages":[["'],
    [404, 'model_not_found', '{"model":"'],
  ] as const)('is refused with %i %s like a small one: %s…', async ([status, code, head]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const tail = { '{"model":["m"],"messages":[["': '"]]}', '{"model":"': '"}' }[head as string] ?? '"}}';
    const response = await gateway.post(CHAT, head + 'x'.repeat(300_000) + tail);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
    expect(await gateway.nextRecord()).toMatchObject({ status, error_type: code });
    expect(replica.requests).toEqual([]);
  });
});
