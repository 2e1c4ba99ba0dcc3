import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answerJson,
  type FakeReplica,
  refusedUrlBeside,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, RawConnection, toChunk } from '#testkit/raw-http.ts';
import { runs } from '#testkit/runs.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const PASS = [
  'GET /version',
  'POST /v1/images/generations',
  'PUT /v1/things',
  'HEAD /v1/things',
  'GET /v1/files/*',
  'DELETE /v1/files/*',
];
const IMAGES = '/v1/images/generations';
const IMAGES_POST = `POST ${IMAGES} HTTP/1.1\r\nHost: g\r\n`;
const KIB = 1024;

/** Answers with the body of the request. */
const echo: Script = async ({ request, head, end }) => {
  const body = await request.body;
  await head(200, ['Content-Type', 'application/octet-stream', 'X-From', 'replica']);
  end(body);
};

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica({ name: 'a' });
  gateway = await startGateway({
    replicas: [replica],
    config: { pass: PASS, limits: { body: '256KiB' } },
  });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

describe('a request of pass', () => {
  test('is relayed with its method, path, query and fields, and leaves no record', async () => {
    replica.answerOnce(answerJson({ version: '1' }, { fields: ['X-Own', 'yes'] }));
    const response = await fetch(`${gateway.url}/version?full=1`, { headers: { 'X-Mine': 'kept' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-own')).toBe('yes');
    expect(await response.json()).toEqual({ version: '1' });
    const received = await replica.nextRequest();
    expect(received).toMatchObject({ method: 'GET', url: '/version?full=1' });
    expect(received.header('x-mine')).toEqual(['kept']);
    expect(received.header('x-request-id')).toEqual([response.headers.get('x-request-id')]);
    expect(received.header('traceparent')).toEqual([
      expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/),
    ]);
    expect(received.header('content-length')).toEqual([]);
    expect(await gateway.stats()).toMatchObject({ recorded: 0 });
  });

  test('may have any of the methods, with and without a body', async () => {
    replica.answerOnce(echo);
    const put = await fetch(`${gateway.url}/v1/things`, { method: 'PUT', body: 'x' });
    expect(await put.text()).toBe('x');
    replica.answerOnce(answerJson({}));
    const head = await fetch(`${gateway.url}/v1/things`, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(head.headers.get('content-length')).toBe('2');
    replica.answerOnce(echo);
    const empty = await exchangeRaw(gateway.url, postBytes(IMAGES, ''));
    expect(empty.status).toBe(200);
    const received = [await replica.nextRequest(), await replica.nextRequest(), await replica.nextRequest()];
    expect(received.map(({ method }) => method)).toEqual(['PUT', 'HEAD', 'POST']);
    expect(received[2]?.header('content-length')).toEqual(['0']);
  });

  test('and its answer are relayed byte for byte, whatever they are and however they are cut', async () => {
    replica.answer(echo);
    const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 3000 }), { maxLength: 8 });
    const repeats = fc.constantFrom(1, 1, 1, 30);
    await fc.assert(
      fc.asyncProperty(
        pieces,
        repeats,
        fc.boolean(),
        fc.boolean(),
        async (parts, times, isChunked, isEncoded) => {
          const chunks = Array.from({ length: times }, () => parts.map((part) => Buffer.from(part))).flat();
          const body = Buffer.concat(chunks).subarray(0, 256 * KIB);
          const encoding = isEncoded ? 'Content-Encoding: gzip\r\n' : '';
          using client = await RawConnection.open(gateway.url);
          if (isChunked) {
            client.write(`${IMAGES_POST}${encoding}Transfer-Encoding: chunked\r\n\r\n`);
            for (const chunk of chunks) client.write(toChunk(chunk));
            client.write('0\r\nX-Trailer: dropped\r\n\r\n');
          } else {
            client.write(`${IMAGES_POST}${encoding}Content-Length: ${body.length}\r\n\r\n`);
            client.write(body);
          }
          const expected = isChunked ? Buffer.concat(chunks) : body;
          const response = await client.readResponse();
          expect(response.status).toBe(200);
          expect(response.isComplete).toBe(true);
          expect(response.body.equals(expected)).toBe(true);
          const received = await replica.nextRequest();
          expect((await received.body).equals(expected)).toBe(true);
          expect(received.header('content-encoding')).toEqual(isEncoded ? ['gzip'] : []);
        },
      ),
      { numRuns: runs(60) },
    );
    replica.answer(answerJson({}));
    expect(await gateway.stats()).toMatchObject({ recorded: 0 });
  });

  test('gets 100 Continue when the replica is ready for its body', async () => {
    replica.answerOnce(echo);
    using client = await RawConnection.open(gateway.url);
    client.write(`${IMAGES_POST}Content-Length: ${100 * KIB}\r\nExpect: 100-continue\r\n\r\n`);
    expect((await client.readResponse()).status).toBe(100);
    client.write(Buffer.alloc(100 * KIB, 'x'));
    expect((await client.readResponse()).body).toHaveLength(100 * KIB);
    await replica.nextRequest();
  });

  test('can be followed by another one on the same connection', async () => {
    replica.answerOnce(echo);
    replica.answerOnce(echo);
    using client = await RawConnection.open(gateway.url);
    const body = Buffer.alloc(100 * KIB, 'x');
    const post = Buffer.concat([Buffer.from(`${IMAGES_POST}Content-Length: ${body.length}\r\n\r\n`), body]);
    client.write(Buffer.concat([post, post]));
    for (let i = 0; i < 2; i++) expect((await client.readResponse()).body).toHaveLength(body.length);
    await replica.nextRequest();
    await replica.nextRequest();
  });
});

describe('a path below a star', () => {
  test.each(['/v1/files/f-1', '/v1/files/f-1/content', '/v1/files/...', '/v1/files/a@b:c?x=%2e%2e'])(
    'is relayed: %s',
    async (target) => {
      replica.answerOnce(answerJson({}));
      const response = await exchangeRaw(gateway.url, `GET ${target} HTTP/1.1\r\nHost: g\r\n\r\n`);
      expect(response.status).toBe(200);
      expect((await replica.nextRequest()).url).toBe(target);
    },
  );

  test.each([
    'GET /v1/files',
    'GET /v1/files/',
    'GET /v1/files/f-1/',
    'GET /v1/files//f-1',
    'GET /v1/files/../models',
    'GET /v1/files/./f-1',
    'GET /v1/files/f-1/..',
    'GET /v1/files/%2e%2e/admin',
    'GET /v1/files/..%2fadmin',
    'GET /v1/files/..;/admin',
    'GET /v1/files/a\\..\\b',
    'GET /v1/filesystem',
    'POST /v1/files/f-1',
  ])('is 404 if it could mean another path: %s', async (line) => {
    const seen = replica.requests.length;
    const response = await exchangeRaw(
      gateway.url,
      `${line} HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n`,
    );
    expect([400, 404]).toContain(response.status);
    expect(replica.requests).toHaveLength(seen);
  });
});

describe('which replica gets a request of pass', () => {
  test('is the next in turn that is not drained and does not refuse', async () => {
    await using a = await startFakeReplica({ name: 'a', script: answerJson({ from: 'a' }) });
    await using b = await startFakeReplica({ name: 'b', script: answerJson({ from: 'b' }) });
    const refusing = { name: 'c', url: refusedUrlBeside(a) };
    await using shared = await startGateway({ replicas: [a, refusing, b], config: { pass: PASS } });
    const large = Buffer.alloc(100 * KIB, 'x');
    const ask = async (body: string | Buffer) =>
      (
        JSON.parse((await exchangeRaw(shared.url, postBytes(IMAGES, body))).body.toString()) as {
          from: string;
        }
      ).from;

    expect([await ask('{}'), await ask('{}'), await ask('{}'), await ask('{}')]).toContain('a');
    for (const body of ['{}', large, '{}', large, large]) expect(['a', 'b']).toContain(await ask(body));
    await shared.admin('/admin/replicas/a/drain', { method: 'POST' });
    for (const body of ['{}', large, '{}', large]) expect(await ask(body)).toBe('b');
    await shared.admin('/admin/replicas/b/drain', { method: 'POST' });
    const unreachable = await exchangeRaw(shared.url, postBytes(IMAGES, large));
    expect(unreachable.status).toBe(502);
    await shared.admin('/admin/replicas/c/drain', { method: 'POST' });
    const drained = await exchangeRaw(shared.url, postBytes(IMAGES, large));
    expect(drained.status).toBe(503);
    expect(drained.header('retry-after')).toEqual(['1']);
    expect(JSON.parse(drained.body.toString())).toMatchObject({ error: { code: 'all_replicas_drained' } });
  });

  test('is another one while llama.cpp loads its model, if the body can be sent again', async () => {
    const error = { code: 503, message: 'Loading model', type: 'unavailable_error' };
    await using a = await startFakeReplica({ name: 'a', script: answerJson({ error }, { status: 503 }) });
    await using b = await startFakeReplica({ name: 'b', script: echo });
    const replicas = [a, b].map(({ name, url }) => ({ name, url, engine: 'llamacpp' }));
    await using loading = await startGateway({ replicas, config: { pass: PASS } });
    for (let i = 0; i < 3; i++) {
      expect((await exchangeRaw(loading.url, postBytes(IMAGES, '{"a":1}'))).body.toString()).toBe('{"a":1}');
    }
    const statuses: number[] = [];
    for (let i = 0; i < 2; i++) {
      statuses.push((await exchangeRaw(loading.url, postBytes(IMAGES, Buffer.alloc(100 * KIB)))).status);
    }
    expect(statuses.toSorted()).toEqual([200, 503]);
  });
});

describe('with API keys', () => {
  const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');
  const clients = [
    { name: 'all', key_sha256: digestOf('key-of-all') },
    { name: 'narrow', key_sha256: digestOf('key-of-narrow'), models: ['m'] },
  ];

  test('a request of pass needs one, and one for all models', async () => {
    await using own = await startFakeReplica();
    await using guarded = await startGateway({ replicas: [own], config: { pass: PASS, clients } });
    const ask = (key?: string) =>
      fetch(`${guarded.url}/version`, key === undefined ? {} : { headers: { 'x-api-key': key } });
    expect((await ask()).status).toBe(401);
    expect((await ask('__proto__')).status).toBe(401);
    expect((await ask('key-of-narrow')).status).toBe(404);
    expect(own.requests).toHaveLength(0);
    expect((await ask('key-of-all')).status).toBe(200);
    expect((await own.nextRequest()).header('x-api-key')).toEqual([]);
  });
});

test('a reload changes what is relayed', async () => {
  await using own = await startFakeReplica();
  await using changing = await startGateway({ replicas: [own] });
  const ask = async () => (await fetch(`${changing.url}/version`)).status;
  expect(await ask()).toBe(404);
  changing.writeConfig({ config: { pass: PASS } });
  expect((await changing.reload()).status).toBe(200);
  expect(await ask()).toBe(200);
});
