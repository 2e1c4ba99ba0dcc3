import { hash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answerJson,
  answerStream,
  chatChunk,
  DONE,
  type FakeReplica,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection, toChunks } from '#testkit/raw-http.ts';
import { FORM_TYPE, type FormPart, formOf } from '#testkit/reading/form.ts';
import { runs } from '#testkit/runs.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const PATH = '/v1/audio/transcriptions';
const TYPE_LINE = `Content-Type: ${FORM_TYPE}`;
const KIB = 1024;
const ALIASES = { 'whisper-1': 'm', w: 'org/whisper-large', 'klein "é"': 'm' };
const ON = { endpoints: ['audio/transcriptions'], aliases: ALIASES };
const model = (value: string): FormPart => ({ name: 'model', value });
/** Has the alias and the beginnings of boundaries in it. */
const fileOf = (sizeBytes: number): FormPart => ({
  name: 'file',
  filename: 'whisper-1',
  value: Buffer.alloc(sizeBytes, 'whisper-1\r\n--boundar\r\nname="model"\r\n\r\nwhisper-1'),
});
const PROMPT: FormPart = { name: 'prompt', value: 'whisper-1' };

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  replica.answer(answerJson({ text: 't' }));
  gateway = await startGateway({
    replicas: [{ name: 'r', url: replica.url, models: ['m', 'org/whisper-large'] }],
    config: { ...ON, limits: { before_model: '200KiB' } },
  });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

const send = (to: StartedGateway, parts: readonly FormPart[], key = '') =>
  to.post(PATH, formOf(parts), { headers: { 'Content-Type': FORM_TYPE, Authorization: `Bearer ${key}` } });

describe('in a form, only the alias is replaced', () => {
  test.each([
    ['before a file', 'whisper-1', [], [fileOf(300 * KIB)]],
    ['before a file, by a longer name', 'w', [], [fileOf(300 * KIB)]],
    ['after a file', 'w', [fileOf(150 * KIB), PROMPT], []],
    ['with letters beyond ASCII', 'klein "é"', [PROMPT], [fileOf(10)]],
  ])('%s', async (_, alias, before, after) => {
    const response = await send(gateway, [...before, model(alias), ...after]);
    expect(response.status).toBe(200);
    const name = ALIASES[alias as keyof typeof ALIASES];
    const expected = formOf([...before, model(name), ...after]);
    const received = await replica.nextRequest();
    expect((await received.body).equals(expected)).toBe(true);
    expect(received.header('content-length')).toEqual([String(expected.length)]);
    expect(await gateway.nextRecord()).toMatchObject({
      model: name,
      model_requested: alias,
      status: 200,
      request_bytes: formOf([...before, model(alias), ...after]).length,
    });
  });

  test('wherever it is cut', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 });
    const others = fc.subarray([PROMPT, fileOf(700), { name: 'x', value: '' }]);
    const alias = fc.constantFrom(...(Object.keys(ALIASES) as (keyof typeof ALIASES)[]));
    await fc.assert(
      fc.asyncProperty(
        sizes,
        others,
        others,
        alias,
        fc.boolean(),
        async (cuts, before, after, name, isSmall) => {
          const body = formOf([...before, model(name), ...after]);
          // One that is large is sent on before its end has come.
          const rest = isSmall ? [] : [fileOf(100 * KIB)];
          const whole = formOf([...before, model(name), ...after, ...rest]);
          using client = await RawConnection.open(gateway.url);
          client.write(
            `POST ${PATH} HTTP/1.1\r\nHost: g\r\n${TYPE_LINE}\r\nTransfer-Encoding: chunked\r\n\r\n`,
          );
          const toSize = (at: number, index: number) =>
            at < body.length ? (cuts[index % cuts.length] ?? 1) : 30_000;
          for (const chunk of toChunks(whole, toSize)) client.write(chunk);
          expect((await client.readResponse()).status).toBe(200);
          const expected = formOf([...before, model(ALIASES[name]), ...after, ...rest]);
          expect((await (await replica.nextRequest()).body).equals(expected)).toBe(true);
          expect(await gateway.nextRecord()).toMatchObject({ model_requested: name });
        },
      ),
      { numRuns: runs(60) },
    );
  });

  test('and nothing where the form has the model\u2019s own name', async () => {
    const parts = [model('m'), PROMPT, fileOf(10)];
    expect((await send(gateway, parts)).status).toBe(200);
    expect((await (await replica.nextRequest()).body).equals(formOf(parts))).toBe(true);
    expect(await gateway.nextRecord()).not.toHaveProperty('model_requested');
  });

  test('while the rest of the form still comes', async () => {
    const parts = [model('w'), fileOf(200 * KIB)];
    const bytes = postBytes(PATH, formOf(parts), [TYPE_LINE]);
    using client = await RawConnection.open(gateway.url);
    client.write(bytes.subarray(0, -10));
    const received = await replica.nextRequest();
    client.write(bytes.subarray(-10));
    expect((await client.readResponse()).status).toBe(200);
    const expected = formOf([model('org/whisper-large'), fileOf(200 * KIB)]);
    expect((await received.body).equals(expected)).toBe(true);
    await gateway.nextRecord();
  });

  test('also where the longer name makes the form exceed limits.body', async () => {
    const parts = [model('w'), fileOf(100 * KIB)];
    const limits = { body: formOf(parts).length, before_model: '32KiB' };
    await using exact = await startGateway({
      replicas: [{ name: 'r', url: replica.url, models: ['org/whisper-large'] }],
      config: { ...ON, limits },
    });
    expect((await send(exact, parts)).status).toBe(200);
    await (await replica.nextRequest()).body;
  });
});

describe('the answer to a form with an alias names the alias', () => {
  test('in JSON', async () => {
    replica.answerOnce(answerJson('{"text":"m", "model" : "m"}'));
    const response = await send(gateway, [model('whisper-1'), fileOf(100 * KIB)]);
    expect(await response.text()).toBe('{"text":"m", "model" : "whisper-1"}');
    await replica.nextRequest();
    expect(await gateway.nextRecord()).toMatchObject({ model: 'm', model_requested: 'whisper-1' });
  });

  test('in a stream', async () => {
    const stream = chatChunk('Hi') + chatChunk('', 'stop') + DONE;
    replica.answerOnce(answerStream([stream]));
    const response = await send(gateway, [fileOf(10), model('w')]);
    expect(await response.text()).toBe(stream.replaceAll('"model":"m"', '"model":"w"'));
    await replica.nextRequest();
    await gateway.nextRecord();
  });
});

test('an alias after more than limits.before_model is late', async () => {
  const response = await send(gateway, [fileOf(300 * KIB), model('w')]);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: 'late_model' } });
  expect(await gateway.nextRecord()).toMatchObject({ error_type: 'late_model' });
});

describe('where only one model is served', () => {
  const parts = (name: string, sizeBytes: number) => [fileOf(sizeBytes), model(name)];

  test('an alias after a file is replaced, unless the file exceeds limits.before_model', async () => {
    await using one = await startGateway({
      replicas: [replica],
      config: { ...ON, limits: { before_model: '100KiB' } },
    });
    expect((await send(one, parts('whisper-1', 90 * KIB))).status).toBe(200);
    expect((await (await replica.nextRequest()).body).equals(formOf(parts('m', 90 * KIB)))).toBe(true);
    expect((await send(one, parts('m', 400 * KIB))).status).toBe(200);
    expect((await (await replica.nextRequest()).body).equals(formOf(parts('m', 400 * KIB)))).toBe(true);

    const aborted = Promise.withResolvers<void>();
    replica.answerOnce(async ({ request }) => {
      await request.untilAborted();
      aborted.resolve();
    });
    const bytes = postBytes(PATH, formOf(parts('whisper-1', 400 * KIB)), [TYPE_LINE]);
    using client = await RawConnection.open(one.url);
    client.write(bytes.subarray(0, 300 * KIB));
    await replica.nextRequest();
    client.write(bytes.subarray(300 * KIB));
    const response = await client.readResponse();
    expect(response.status).toBe(400);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'late_model' } });
    await aborted.promise;
  });

  test('a form without a model goes there', async () => {
    await using one = await startGateway({ replicas: [replica], config: ON });
    expect((await send(one, [fileOf(90 * KIB)])).status).toBe(200);
    expect((await (await replica.nextRequest()).body).equals(formOf([fileOf(90 * KIB)]))).toBe(true);
    expect(await one.nextRecord()).toMatchObject({ model: 'm' });
  });
});

test('a client may use the names in its list, as it writes them', async () => {
  const clients = [{ name: 'c', key_sha256: hash('sha256', 'key'), models: ['whisper-1'] }];
  await using limited = await startGateway({ replicas: [replica], config: { ...ON, clients } });
  expect((await send(limited, [fileOf(10), model('whisper-1')], 'key')).status).toBe(200);
  await replica.nextRequest();
  expect((await send(limited, [fileOf(10), model('m')], 'key')).status).toBe(404);
});
