import { describe, expect, test } from 'vitest';
import { answerJson, answerRaw, type ReceivedRequest, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, type RawResponse, valuesOf } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const BODY = '{"model":"m"}';

/** Sends a chat request with these field lines, and returns how it reached the replica. */
async function requestWith(fields: readonly string[]): Promise<ReceivedRequest> {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY, fields));
  expect(response.status).toBe(200);
  return await replica.nextRequest();
}

describe('on the way to the replica', () => {
  test.for([
    ['X-Real-IP', '10.0.0.1'],
    ['x-real-ip', '10.0.0.1'],
    ['Forwarded', 'for=10.0.0.1;host=elsewhere;proto=https'],
    ['Content_Length', '5'],
    ['Transfer_Encoding', 'chunked'],
    ['X_Forwarded_For', '10.0.0.1'],
    ['X_Real_IP', '10.0.0.1'],
    ['X_Request_Id', 'mine'],
    ['My_Field', '1'],
  ] as const)('%s stays behind: it could be taken for a fact of the gateway', async ([name, value]) => {
    const received = await requestWith([`${name}: ${value}`, 'X-Kept: 1']);

    expect(received.header(name)).toEqual([]);
    expect(received.rawHeaders.filter((text) => text.includes('_'))).toEqual([]);
    expect(received.header('x-kept')).toEqual(['1']);
    expect(received.header('content-length')).toEqual([String(BODY.length)]);
  });

  test('what any of several Connection fields names stays behind, in any spelling', async () => {
    const received = await requestWith([
      'X-One: 1',
      'Connection: X-One,, x-TWO ,',
      'X-Two: 2',
      'connection: X-Three',
      'X-Three: 3',
      'CONNECTION: keep-alive',
      'X-Four: 4',
    ]);

    for (const name of ['x-one', 'x-two', 'x-three']) expect(received.header(name), name).toEqual([]);
    expect(received.header('x-four')).toEqual(['4']);
  });

  test('a field that Connection names after it stays behind', async () => {
    const received = await requestWith(['Authorization: Bearer x', 'X-One: 1', 'Connection: X-One, close']);
    expect(received.header('x-one')).toEqual([]);
    expect(received.header('authorization')).toEqual(['Bearer x']);
  });

  test('a field with an underscore can still tell the tenant', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { headers: { tenant: 'X_Tenant' } },
    });

    await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY, ['X_Tenant: acme']));

    expect(await gateway.nextRecord()).toMatchObject({ tenant: 'acme' });
  });
});

describe('on the way to the client', () => {
  test('what any of several Connection fields names stays behind', async () => {
    const fields = [
      ...['X-One', '1', 'Connection', 'X-One, x-two', 'X-Two', '2', 'Connection', 'X-Three'],
      ...['X-Three', '3', 'Connection', 'keep-alive', 'X-Four', '4'],
    ];
    await using replica = await startFakeReplica({ script: answerJson('{}', { fields }) });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY));

    for (const name of ['x-one', 'x-two', 'x-three']) expect(response.header(name), name).toEqual([]);
    expect(response.header('x-four')).toEqual(['4']);
    expect(response.header('connection').join()).not.toMatch(/x-/i);
  });

  /** Relays a chunked answer that ends with these trailer lines. */
  async function trailersOf(
    lines: readonly string[],
    { version = 'HTTP/1.1', fields = [] as readonly string[] } = {},
  ): Promise<RawResponse> {
    const head = [
      'HTTP/1.1 200 OK',
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      ...fields,
    ];
    await using replica = await startFakeReplica({
      script: answerRaw(`${head.join('\r\n')}\r\n\r\n2\r\n{}\r\n0\r\n${lines.join('\r\n')}\r\n\r\n`),
    });
    await using gateway = await startGateway({ replicas: [replica] });
    const request = postBytes('/v1/chat/completions', BODY).toString('latin1').replace('HTTP/1.1', version);
    const response = await exchangeRaw(gateway.url, request);
    expect(response.body.toString()).toBe('{}');
    return response;
  }

  test('trailer fields that say something of the content pass', async () => {
    const lines = ['X-Checksum: abc', 'Server-Timing: total;dur=12', 'X-Latin: caf\xe9', 'x-checksum: def'];
    const { rawTrailers } = await trailersOf(lines);
    expect(rawTrailers.slice(0, 6)).toEqual([
      ...['X-Checksum', 'abc', 'Server-Timing', 'total;dur=12', 'X-Latin', 'caf\xe9'],
    ]);
    expect(valuesOf(rawTrailers, 'x-checksum')).toEqual(['abc', 'def']);
  });

  // Framing, routing, authentication, control and format of content: RFC 9110 6.5.1.
  test.for([
    ...['Keep-Alive: timeout=1', 'Proxy-Connection: close', 'TE: trailers', 'Upgrade: x'],
    'Trailer: X-A',
    ...[
      'X-Request-Id: fake',
      'Content-Type: text/html',
      'Content-Encoding: gzip',
      'Content-Range: bytes 0-1/2',
    ],
    ...['Authorization: Bearer x', 'WWW-Authenticate: Basic', 'Set-Cookie: a=1', 'Cache-Control: public'],
    ...['Location: /elsewhere', 'Retry-After: 1', 'Date: Tue, 15 Nov 1994 08:12:31 GMT', 'Vary: *'],
  ])('the trailer field %s stays behind', async (line) => {
    const { rawTrailers } = await trailersOf(['X-First: 1', line, 'X-Last: 2']);
    expect(rawTrailers).toEqual(['X-First', '1', 'X-Last', '2']);
  });

  test.for(['Transfer-Encoding: chunked', 'Content-Length: 5', 'Host: elsewhere', 'Connection: X-Last'])(
    'the trailer field %s, which no message may have, breaks the response off',
    async (line) => {
      const bytes = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${line}\r\n\r\n`;
      await using replica = await startFakeReplica({ script: answerRaw(bytes) });
      await using gateway = await startGateway({ replicas: [replica] });
      const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY));
      expect(response.isComplete).toBe(false);
      expect(await gateway.nextRecord()).toMatchObject({ error_type: 'upstream_failed', truncated: true });
    },
  );

  test('a trailer field that Connection named stays behind', async () => {
    const { rawTrailers } = await trailersOf(['X-Mine: 1', 'X-Last: 2'], { fields: ['Connection: X-Mine'] });
    expect(rawTrailers).toEqual(['X-Last', '2']);
  });

  test('a client of HTTP/1.0 gets no trailer fields', async () => {
    const response = await trailersOf(['X-Checksum: abc'], { version: 'HTTP/1.0' });
    expect(response.rawTrailers).toEqual([]);
    expect(response.header('trailer')).toEqual([]);
  });
});
