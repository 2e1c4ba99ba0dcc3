import { hash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import OpenAI, { BadRequestError, toFile } from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  answerJson,
  answerRaw,
  answerStream,
  chatChunk,
  DONE,
  event,
  type FakeReplica,
  hang,
  partial,
  refusedUrlBeside,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection, toChunks } from '#testkit/raw-http.ts';
import { FORM_TYPE, type FormPart, formOf } from '#testkit/reading/form.ts';
import { runs } from '#testkit/runs.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const PATH = '/v1/audio/transcriptions';
const FORM_FIELDS = [`Content-Type: ${FORM_TYPE}`];
const ON = { endpoints: ['audio/transcriptions', 'audio/translations'] };
const KIB = 1024;
const MODEL: FormPart = { name: 'model', value: 'm' };
const fileOf = (sizeBytes: number): FormPart => ({
  name: 'file',
  value: randomBytes(sizeBytes),
  filename: 'canary-file.wav',
});
const TEXT = { text: 'canary-text' };

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({ replicas: [replica], config: ON });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

afterEach(() => {
  for (const record of gateway.records) expect(JSON.stringify(record)).not.toContain('canary');
});

const send = (to: StartedGateway, body: Buffer, path = PATH) =>
  to.post(path, body, { headers: { 'Content-Type': FORM_TYPE } });

/** The record of a form that the replica answers like this. */
async function recordOf(script: Script, parts: readonly FormPart[] = [MODEL, fileOf(10)]) {
  replica.answerOnce(script);
  const response = await send(gateway, formOf(parts));
  await response.text();
  await replica.nextRequest();
  return gateway.nextRecord();
}

describe('a form with audio', () => {
  test.each([
    ['the model before the file', [MODEL, fileOf(300 * KIB)]],
    ['the file before the model', [fileOf(300 * KIB), MODEL]],
    ['no model, where only one is served', [fileOf(300 * KIB)]],
    ['a small file', [fileOf(10), MODEL]],
  ])('is relayed byte for byte and recorded, with %s', async (_, parts) => {
    replica.answerOnce(answerJson({ ...TEXT, usage: { type: 'duration', seconds: 7 } }));
    const body = formOf(parts);
    const response = await send(gateway, body);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject(TEXT);
    const received = await replica.nextRequest();
    expect((await received.body).equals(body)).toBe(true);
    expect(received.header('content-type')).toEqual([FORM_TYPE]);
    expect(received.header('content-length')).toEqual([String(body.length)]);
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({
      endpoint: PATH,
      model: 'm',
      status: 200,
      attempts: 1,
      request_bytes: body.length,
      audio_seconds: 7,
      stream: false,
    });
    expect(record).not.toHaveProperty('prompt_tokens');
    expect(record).not.toHaveProperty('prefix_hashes');
  });

  test('is relayed byte for byte, however it is cut', async () => {
    replica.answer(answerJson(TEXT));
    const sizes = fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 6 });
    const parts = fc.constantFrom([MODEL, fileOf(100 * KIB)], [fileOf(100 * KIB), MODEL], [fileOf(5), MODEL]);
    await fc.assert(
      fc.asyncProperty(sizes, parts, async (chunkSizes, form) => {
        const body = formOf(form);
        using client = await RawConnection.open(gateway.url);
        client.write(
          `POST ${PATH} HTTP/1.1\r\nHost: g\r\n${FORM_FIELDS[0]}\r\nTransfer-Encoding: chunked\r\n\r\n`,
        );
        const toSize = (_at: number, index: number) => (chunkSizes[index % chunkSizes.length] ?? 1) + 500;
        for (const chunk of toChunks(body, toSize)) client.write(chunk);
        expect((await client.readResponse()).status).toBe(200);
        const received = await replica.nextRequest();
        expect((await received.body).equals(body)).toBe(true);
        expect(await gateway.nextRecord()).toMatchObject({ request_bytes: body.length, model: 'm' });
      }),
      { numRuns: runs(30) },
    );
  });

  test('reaches the replica while it still comes from the client', async () => {
    const body = formOf([MODEL, fileOf(200 * KIB)]);
    using client = await RawConnection.open(gateway.url);
    replica.answerOnce(answerJson(TEXT));
    const bytes = postBytes(PATH, body, FORM_FIELDS);
    client.write(bytes.subarray(0, -10));
    const received = await replica.nextRequest();
    client.write(bytes.subarray(-10));
    expect((await client.readResponse()).status).toBe(200);
    expect((await received.body).equals(body)).toBe(true);
    await gateway.nextRecord();
  });

  test('of the OpenAI client is served, and its stream is read', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'k', maxRetries: 0 });
    const file = await toFile(randomBytes(100 * KIB), 'a.wav');
    replica.answerOnce(answerJson({ ...TEXT, usage: { type: 'duration', seconds: 3 } }));
    expect(await client.audio.transcriptions.create({ file, model: 'm' })).toMatchObject(TEXT);
    replica.answerOnce(
      answerStream([
        event({ type: 'transcript.text.delta', delta: 'canary' }),
        event({ type: 'transcript.text.done', text: 'canary', usage: { type: 'duration', seconds: 3 } }),
      ]),
    );
    const types: string[] = [];
    for await (const { type } of await client.audio.transcriptions.create({
      file,
      model: 'm',
      stream: true,
    })) {
      types.push(type);
    }
    expect(types).toEqual(['transcript.text.delta', 'transcript.text.done']);
    replica.answerOnce(answerJson({ text: 'canary' }));
    expect(await client.audio.translations.create({ file, model: 'm' })).toEqual({ text: 'canary' });
    await expect(
      client.audio.transcriptions.create({ file: 'canary' as unknown as File, model: 'm' }),
    ).resolves.toBeDefined();
    const records = [await gateway.nextRecord(), await gateway.nextRecord(), await gateway.nextRecord()];
    expect(records).toMatchObject([
      { audio_seconds: 3, stream: false },
      { audio_seconds: 3, stream: true, ttft_ms: expect.any(Number) },
      { endpoint: '/v1/audio/translations' },
    ]);
    for (const _ of [1, 2, 3, 4]) await replica.nextRequest();
    await gateway.nextRecord();
  });
});

describe('the record of a transcription has', () => {
  test('the characters of the prompt', async () => {
    const parts = [MODEL, { name: 'prompt', value: 'aé😀' }, fileOf(5)];
    expect(await recordOf(answerJson(TEXT), parts)).toMatchObject({ prompt_chars: 3 });
  });

  test.each([
    [
      'tokens',
      { usage: { type: 'tokens', input_tokens: 9, output_tokens: 4 } },
      { prompt_tokens: 9, completion_tokens: 4 },
    ],
    ['the length of a verbose answer of vLLM', { duration: '5.25', segments: [] }, { audio_seconds: 5.25 }],
    ['the length of a verbose answer', { duration: 5.25 }, { audio_seconds: 5.25 }],
    ['seconds before the length', { duration: '5.25', usage: { seconds: 6 } }, { audio_seconds: 6 }],
  ])('%s', async (_, answer, expected) => {
    expect(await recordOf(answerJson({ ...TEXT, ...answer }))).toMatchObject(expected);
  });

  test.each([['text'], [-1], [null], ['1e9'], [{}]])('no length if that is %j', async (duration) => {
    expect(await recordOf(answerJson({ ...TEXT, duration }))).not.toHaveProperty('audio_seconds');
  });

  test('the tokens and the first output of a stream with choices, as vLLM and SGLang send it', async () => {
    const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
    const last = event({ object: 'transcription.chunk', choices: [], usage });
    const record = await recordOf(answerStream([chatChunk('canary'), chatChunk('', 'stop'), last, DONE]));
    expect(record).toMatchObject({
      prompt_tokens: 9,
      completion_tokens: 2,
      finish_reasons: ['stop'],
      stream: true,
      ttft_ms: expect.any(Number),
    });
    expect(record).not.toHaveProperty('truncated');
  });

  test('the tokens of a stream with typed events', async () => {
    const usage = {
      type: 'tokens',
      input_tokens: 14,
      output_tokens: 5,
      total_tokens: 19,
      input_token_details: { text_tokens: 0, audio_tokens: 14 },
    };
    const record = await recordOf(
      answerStream([
        event({ type: 'transcript.text.delta', delta: '' }),
        event({ delta: 'canary', type: 'transcript.text.delta' }),
        event({ type: 'transcript.text.done', text: 'canary', usage }),
      ]),
    );
    expect(record).toMatchObject({
      prompt_tokens: 14,
      prompt_audio_tokens: 14,
      completion_tokens: 5,
      ttft_ms: expect.any(Number),
    });
    expect(record).not.toHaveProperty('truncated');
  });

  test('that a stream broke off', async () => {
    const delta = event({ type: 'transcript.text.delta', delta: 'canary' });
    const record = await recordOf(partial('text/event-stream', [delta], 'cut'));
    expect(record).toMatchObject({ truncated: true, error_type: 'upstream_failed' });
  });

  test('nothing of an answer that is text', async () => {
    const answer = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\ncanary';
    const record = await recordOf(answerRaw(answer));
    expect(record).toMatchObject({ status: 200, stream: false });
    expect(record).not.toHaveProperty('audio_seconds');
  });
});

describe('a form is refused', () => {
  const big = { name: 'file', value: Buffer.alloc(40 * KIB), filename: 'f' };

  async function startTwoModels(config: object = {}): Promise<StartedGateway> {
    const two = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: ['m', 'n'] }],
      config: { ...ON, ...config },
    });
    onTestFinished(async () => {
      await two.close();
    });
    return two;
  }

  test.each([
    ['it is JSON', '{"model":"m"}', 'application/json', 400, 'invalid_form'],
    ['it has no boundary', formOf([MODEL]), 'multipart/form-data', 400, 'invalid_form'],
    ['it has no end', formOf([MODEL]).subarray(0, -8), FORM_TYPE, 400, 'invalid_form'],
    ['it has two models', formOf([MODEL, MODEL]), FORM_TYPE, 400, 'invalid_form'],
    ['it is empty', '', FORM_TYPE, 400, 'invalid_form'],
    [
      'no replica serves its model',
      formOf([{ name: 'model', value: 'x' }]),
      FORM_TYPE,
      404,
      'model_not_found',
    ],
  ] as const)('if %s', async (_, body, type, status, code) => {
    const response = await gateway.post(PATH, body, { headers: { 'Content-Type': type } });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code, type: 'invalid_request_error' } });
    expect(await gateway.nextRecord()).toMatchObject({ status, error_type: code, endpoint: PATH });
  });

  const named = (disposition: string) =>
    Buffer.concat([
      Buffer.from(`--boundary\r\nContent-Disposition: form-data; ${disposition}\r\n\r\nn\r\n`),
      formOf([MODEL]),
    ]);

  test.each([
    [
      'names in the charset of its type',
      formOf([{ name: '+AG0-odel', value: 'n' }, MODEL]),
      'multipart/form-data; charset=utf-7; boundary=boundary',
    ],
    ['a name in pieces', named('name="x"; name*0="mod"; name*1="el"'), FORM_TYPE],
    ['an extended boundary', formOf([MODEL]), `${FORM_TYPE}; boundary*=utf-8''other`],
    [
      'a boundary inside quotation marks',
      formOf([MODEL]),
      'multipart/form-data; q="; boundary=other; z="; boundary=boundary',
    ],
    ['a name inside quotation marks', named('a="; name=model; b="; name="x"'), FORM_TYPE],
    ['a model after its end', Buffer.concat([formOf([MODEL]), formOf([MODEL])]), FORM_TYPE],
  ])('before a byte of it is sent, if it has %s', async (_, body, type) => {
    const requestCount = replica.requests.length;
    const response = await gateway.post(PATH, body, { headers: { 'Content-Type': type } });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_form' } });
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ error_type: 'invalid_form' });
    expect(record).not.toHaveProperty('attempts');
    expect(replica.requests).toHaveLength(requestCount);
  });

  test('if it names no model, or too late, and several are served', async () => {
    const two = await startTwoModels({ limits: { before_model: '32KiB', body: '256KiB' } });
    for (const [parts, status, code] of [
      [[fileOf(10)], 400, 'missing_model'],
      [[fileOf(200 * KIB), MODEL], 400, 'late_model'],
      [[MODEL, fileOf(300 * KIB)], 413, 'request_too_large'],
    ] as const) {
      const response = await send(two, formOf(parts));
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ error: { code } });
      expect(await two.nextRecord()).toMatchObject({ error_type: code });
    }
  });

  test('with a code that the OpenAI client shows', async () => {
    const two = await startTwoModels();
    const client = new OpenAI({ baseURL: `${two.url}/v1`, apiKey: 'k', maxRetries: 0 });
    const file = await toFile(randomBytes(9), 'a.wav');
    const call = client.audio.transcriptions.create({ file, model: '' });
    await expect(call).rejects.toThrow(BadRequestError);
    await expect(call).rejects.toMatchObject({ code: 'missing_model', param: 'model' });
  });

  test.each([
    ['a second model', [MODEL, big, big, { name: 'model', value: 'n' }], 'invalid_form', 400],
    ['another model than the only one', [big, big, { name: 'model', value: 'x' }], 'model_not_found', 404],
  ] as const)(
    'if %s comes when it is on its way: the replica never gets all of it',
    async (_, parts, code, status) => {
      const aborted = Promise.withResolvers<void>();
      replica.answerOnce(async ({ request }) => {
        await request.untilAborted();
        aborted.resolve();
      });
      const bytes = postBytes(PATH, formOf(parts), FORM_FIELDS);
      using client = await RawConnection.open(gateway.url);
      client.write(bytes.subarray(0, 50 * KIB));
      await replica.nextRequest();
      client.write(bytes.subarray(50 * KIB));
      const response = await client.readResponse();
      expect(response.status).toBe(status);
      expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code } });
      await aborted.promise;
      expect(await gateway.nextRecord()).toMatchObject({
        status,
        error_type: code,
        attempts: 1,
        replica: 'a',
      });
    },
  );

  test('before a byte of it is sent, if its client may not use the model or does not name one', async () => {
    const key_sha256 = hash('sha256', 'key');
    await using limited = await startGateway({
      replicas: [replica],
      config: { ...ON, clients: [{ name: 'c', tenant: 't', key_sha256, models: ['n'] }] },
    });
    const headers = { 'Content-Type': FORM_TYPE, Authorization: 'Bearer key' };
    const requestCount = replica.requests.length;
    for (const [parts, code] of [
      [[MODEL, fileOf(100 * KIB)], 'model_not_found'],
      [[fileOf(100 * KIB), MODEL], 'model_not_found'],
      [[fileOf(100 * KIB)], 'missing_model'],
    ] as const) {
      const response = await limited.post(PATH, formOf(parts), { headers });
      expect(await response.json()).toMatchObject({ error: { code } });
      await limited.nextRecord();
    }
    expect(replica.requests).toHaveLength(requestCount);
  });
});

describe('a replica that refuses the connection', () => {
  test('costs a form one more attempt, whatever its size', async () => {
    await using two = await startGateway({
      replicas: [{ name: 'gone', url: refusedUrlBeside(replica) }, replica],
      config: ON,
    });
    for (const sizeBytes of [10, 300 * KIB]) {
      const body = formOf([MODEL, fileOf(sizeBytes)]);
      replica.answerOnce(answerJson(TEXT));
      expect((await send(two, body)).status).toBe(200);
      expect((await (await replica.nextRequest()).body).equals(body)).toBe(true);
    }
    const attempts = (await two.waitForRecords(2)).map((record) => record.attempts);
    expect(attempts).toEqual([2, 2]);
  });

  test('after it has begun to take the form ends the request', async () => {
    await using other = await startFakeReplica({ name: 'b' });
    await using two = await startGateway({ replicas: [replica, other], config: ON });
    replica.answerOnce(({ reset }) => reset());
    const response = await send(two, formOf([MODEL, fileOf(300 * KIB)]));
    expect(response.status).toBe(502);
    await replica.nextRequest();
    expect(await two.nextRecord()).toMatchObject({ status: 502, error_type: 'upstream_failed', attempts: 1 });
    expect(other.requests).toEqual([]);
  });
});

test('a form that is sent as it comes uses a new connection: if that is reset, the answer is 502 at once', async () => {
  const body = formOf([MODEL, fileOf(300 * KIB)]);
  await using other = await startFakeReplica();
  await using two = await startGateway({ replicas: [other], config: ON });
  other.answerOnce(answerJson(TEXT));
  await (await send(two, formOf([MODEL, fileOf(10)]))).text();
  const first = await other.nextRequest();
  await two.nextRecord();
  using client = await RawConnection.open(two.url);
  const bytes = postBytes(PATH, body, FORM_FIELDS);
  other.answerOnce(({ reset }) => reset());
  client.write(bytes.subarray(0, 100 * KIB));
  const second = await other.nextRequest();
  expect(second.connection).not.toBe(first.connection);
  expect(await client.readResponse()).toMatchObject({ status: 502 });
  expect(await two.nextRecord()).toMatchObject({ status: 502, error_type: 'upstream_failed', attempts: 1 });
  expect(other.requests).toHaveLength(2);
});

test('a client that leaves in the middle of its form cancels the request at the replica', async () => {
  replica.answerOnce(hang);
  const bytes = postBytes(PATH, formOf([MODEL, fileOf(200 * KIB)]), FORM_FIELDS);
  const client = await RawConnection.open(gateway.url);
  client.write(bytes.subarray(0, 100 * KIB));
  const received = await replica.nextRequest();
  client[Symbol.dispose]();
  await received.untilAborted();
  expect(await gateway.nextRecord()).toMatchObject({ status: 499, error_type: 'client_closed' });
});

test('the paths are 404 unless they are switched on', async () => {
  await using off = await startGateway({ replicas: [replica] });
  expect((await send(off, formOf([MODEL]))).status).toBe(404);
});
