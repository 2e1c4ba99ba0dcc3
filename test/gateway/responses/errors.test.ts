import { describe, expect, test } from 'vitest';
import {
  hang,
  refusedUrlBeside,
  resetAfterRequest,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, RawConnection, type RawResponse } from '#testkit/raw-http.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const CHAT = '/v1/chat/completions';
const GOOD = '{"model":"m"}';
const UUID = /^[0-9a-f-]{36}$/;

/** A way to get an error of the gateway's own. */
interface ErrorCase {
  readonly name: string;
  readonly status: number;
  readonly code: string;
  readonly param?: string;
  readonly retryAfter?: string;
  readonly script?: Script;
  readonly config?: StartGatewayOptions['config'];
  /** Whether the only replica refuses connections. */
  readonly isRefusing?: boolean;
  readonly send: (gateway: StartedGateway) => Promise<RawResponse>;
  /** What the record has beside the status and the code. */
  readonly record?: object;
  /** Whether the replica saw the request. */
  readonly reaches?: boolean;
}

const post =
  (body: string | Uint8Array, fields: readonly string[] = []) =>
  (gateway: StartedGateway) =>
    exchangeRaw(gateway.url, postBytes(CHAT, body, fields));

const drained = async (gateway: StartedGateway) => {
  await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
  return await exchangeRaw(gateway.url, postBytes(CHAT, GOOD));
};

/** Sends the head and a part of the body, and reads the answer. */
const upload =
  (head: string, part: string | Uint8Array = '') =>
  async (gateway: StartedGateway) => {
    using connection = await RawConnection.open(gateway.url);
    connection.write(`POST ${CHAT} HTTP/1.1\r\nHost: g\r\n${head}\r\n\r\n`);
    connection.write(part);
    return await connection.readResponse();
  };

const badJson: readonly (readonly [name: string, body: string | Uint8Array])[] = [
  ['an empty body', ''],
  ['white space only', ' \n'],
  ['text', 'hello'],
  ['an unclosed object', '{"model":"m"'],
  ['two values', '{"model":"m"}{"model":"m"}'],
  ['a trailing comma', '{"model":"m",}'],
  ['single quotes', "{'model':'m'}"],
  ['a comment', '{"model":"m" /* x */}'],
  ['NaN', '{"model":"m","x":NaN}'],
  ['a leading zero', '{"model":"m","x":01}'],
  ['a raw control character in a string', '{"model":"m","x":"\x01"}'],
  ['a bad escape', '{"model":"m","x":"\\q"}'],
  ['an array', '[{"model":"m"}]'],
  ['a string', '"model"'],
  ['null', 'null'],
  ['UTF-16', Buffer.from('\ufeff{"model":"m"}', 'utf16le')],
  ['nesting without end', `{"model":"m","x":${'['.repeat(100_000)}`],
];

const missingModel: readonly (readonly [name: string, body: string])[] = [
  ['no model', '{}'],
  ['a null', '{"model":null}'],
  ['a number', '{"model":1}'],
  ['an object', '{"model":{"m":"m"}}'],
  ['a model of another object', '{"x":{"model":"m"}}'],
  ['a last one of several that is no string', '{"model":"m","model":1}'],
];

const cases: readonly ErrorCase[] = [
  ...badJson.map(([name, body]) => ({
    name: `invalid JSON: ${name}`,
    status: 400,
    code: 'invalid_json',
    send: post(body),
  })),
  ...missingModel.map(([name, body]) => ({
    name: `a model that is ${name}`,
    status: 400,
    code: 'missing_model',
    param: 'model',
    send: post(body),
  })),
  {
    name: 'a Content-Length over the limit, before a byte of the body',
    status: 413,
    code: 'request_too_large',
    config: { limits: { body: '1KiB' } },
    send: upload('Content-Length: 1025'),
  },
  {
    name: 'a Content-Length over the limit with Expect: no 100',
    status: 413,
    code: 'request_too_large',
    config: { limits: { body: '1KiB' } },
    send: upload('Content-Length: 1025\r\nExpect: 100-continue'),
  },
  {
    name: 'chunks that pass the limit',
    status: 413,
    code: 'request_too_large',
    config: { limits: { body: '1KiB' } },
    send: upload('Transfer-Encoding: chunked', `800\r\n${'x'.repeat(2048)}\r\n`),
  },
  ...['gzip', 'br', 'deflate, gzip', 'x-unknown'].map((encoding) => ({
    name: `Content-Encoding ${encoding}`,
    status: 415,
    code: 'unsupported_encoding',
    send: post(GOOD, [`Content-Encoding: ${encoding}`]),
  })),
  {
    name: 'a body that comes too slowly',
    status: 408,
    code: 'request_timeout',
    config: { timeouts: { client_body: '30ms' } },
    send: upload('Content-Length: 100', '{"model"'),
  },
  {
    name: 'a model that nobody serves',
    status: 404,
    code: 'model_not_found',
    param: 'model',
    send: post('{"model":"nobody-has-it"}'),
    record: { model: 'nobody-has-it' },
  },
  {
    name: 'every replica drained',
    status: 503,
    code: 'all_replicas_drained',
    retryAfter: '1',
    send: drained,
    record: { model: 'm' },
  },
  {
    name: 'no replica reachable',
    status: 502,
    code: 'no_replica_reachable',
    isRefusing: true,
    send: post(GOOD),
    record: { replica: 'a', attempts: 1 },
  },
  {
    name: 'a reset before the headers',
    status: 502,
    code: 'upstream_failed',
    script: resetAfterRequest,
    reaches: true,
    send: post(GOOD),
    record: { replica: 'a', attempts: 1 },
  },
  {
    name: 'headers that do not come in time',
    status: 504,
    code: 'upstream_timeout',
    config: { timeouts: { first_byte: '30ms' } },
    script: hang,
    reaches: true,
    send: post(GOOD),
    record: { replica: 'a', attempts: 1 },
  },
  {
    name: 'headers of a stream that do not come in time',
    status: 504,
    code: 'upstream_timeout',
    config: { timeouts: { first_byte: '30ms' } },
    script: hang,
    reaches: true,
    send: post('{"model":"m","stream":true}'),
    record: { replica: 'a', attempts: 1, stream: false },
  },
];

describe('errors of our own', () => {
  test.for(cases)('$name: $status $code, in the usual shape, with one record', async (one) => {
    const { status, code, param = null, retryAfter, script = hang } = one;
    await using replica = await startFakeReplica({ script });
    const url = one.isRefusing ? refusedUrlBeside(replica) : replica.url;
    await using gateway = await startGateway({ replicas: [{ name: 'a', url }], config: one.config ?? {} });

    const response = await one.send(gateway);

    expect(response.status).toBe(status);
    expect(response.header('content-type')).toEqual(['application/json']);
    expect(response.header('x-request-id')).toEqual([expect.stringMatching(UUID)]);
    expect(response.header('retry-after')).toEqual(retryAfter === undefined ? [] : [retryAfter]);
    const type = status < 500 ? 'invalid_request_error' : 'server_error';
    expect(JSON.parse(response.body.toString())).toEqual({
      error: { message: expect.stringMatching(/^[A-Z][A-Za-z/ ,`-]+\.$/), type, param, code },
    });

    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ status, error_type: code, stream: false, ...one.record });
    expect(record.request_id).toBe(response.header('x-request-id')[0]);
    expect(record.truncated).toBeUndefined();
    await gateway.close();
    expect(gateway.records).toHaveLength(1);
    expect(replica.requests).toHaveLength(one.reaches === true ? 1 : 0);
  });

  test('a time-out tells the replica: the connection is closed', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { first_byte: '30ms' } },
    });

    expect((await gateway.chat()).status).toBe(504);
    await (await replica.nextRequest()).untilAborted();
  });

  test('Content-Encoding identity is no encoding', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, postBytes(CHAT, GOOD, ['Content-Encoding: identity']));

    expect(response.status).toBe(200);
  });

  test('a client that is still uploading when it is refused reads the answer', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: { limits: { body: '1MiB' } } });

    const response = await gateway.post(CHAT, Buffer.alloc(1_500_000, 0x20));

    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: 'request_too_large' } });
  });

  test('more bodies at once than limits.buffered are a 503 overloaded', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { limits: { body: '1KiB', buffered: '1KiB' } },
    });
    using holding = await RawConnection.open(gateway.url);
    holding.write(`POST ${CHAT} HTTP/1.1\r\nHost: g\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n`);
    await holding.readResponse();
    holding.write('x'.repeat(900));

    // Until the gateway has read those bytes there is still room for others.
    let sentCount = 1;
    let response = await gateway.post(CHAT, GOOD.padEnd(900));
    for (; response.status === 200; sentCount++) response = await gateway.post(CHAT, GOOD.padEnd(900));

    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await response.json()).toMatchObject({ error: { code: 'overloaded', type: 'server_error' } });
    expect((await gateway.waitForRecords(sentCount)).at(-1)).toMatchObject({
      status: 503,
      error_type: 'overloaded',
    });
  });

  test('bytes of refused and finished requests are given back to limits.buffered', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { limits: { body: '4KiB', buffered: '4KiB' } },
    });
    const body = JSON.stringify({ model: 'm', x: 'x'.repeat(3000) });

    const statuses: number[] = [];
    for (const sent of [body, '{"model":"unknown"}'.padEnd(3000), body, '{'.padEnd(3000), body]) {
      const response = await gateway.post(CHAT, sent);
      statuses.push(response.status);
      await response.arrayBuffer();
    }

    expect(statuses).toEqual([200, 404, 200, 400, 200]);
  });

  test('headers that come too slowly are a 408, closed, without a record', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { client_headers: '30ms' } },
    });
    using connection = await RawConnection.open(gateway.url);
    connection.write(`POST ${CHAT} HTTP/1.1\r\nHost: `);

    const response = await connection.readResponse();

    expect(response.status).toBe(408);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'request_timeout' } });
    await connection.readToClose();
    await gateway.close();
    expect(gateway.records).toEqual([]);
  });
});

test('a request without a model leaves what is known of it in its record', async () => {
  await using gateway = await startGateway({ replicas: [{ name: 'a', url: 'http://127.0.0.1:9' }] });

  const response = await gateway.post('/v1/chat/completions', {
    max_tokens: 7,
    messages: [{ role: 'user', content: 'Hi'.repeat(1000) }],
  });

  expect(response.status).toBe(400);
  const record = await gateway.nextRecord();
  expect(record).toMatchObject({ error_type: 'missing_model', max_tokens: 7, prompt_chars: 2000 });
  expect(record).not.toHaveProperty('model');
  expect(record).not.toHaveProperty('prefix_hashes');
});
