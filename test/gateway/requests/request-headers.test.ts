import { describe, expect, test } from 'vitest';
import { type ReceivedRequest, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const BODY = '{"model":"m"}';

/** Sends a chat request with these field lines, and returns how it reached the replica. */
async function requestWith(
  fields: readonly string[],
  replicaKeys: { api_key?: string } = {},
): Promise<ReceivedRequest> {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, ...replicaKeys }] });
  const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY, fields));
  expect(response.status).toBe(200);
  return await replica.nextRequest();
}

describe('on the way to the replica', () => {
  test('fields pass as they came: order, spelling, duplicates, empty values', async () => {
    const received = await requestWith([
      'X-Custom: 1',
      'x-custom: 2',
      'X-Empty:',
      'AUTHORIZATION: Bearer client-key',
      'OpenAI-Organization: org-1',
      'Cookie: a=1',
      'Cookie: b=2',
      'User-Agent: test/1',
    ]);

    const passed = received.rawHeaders.join('\n');
    expect(passed).toContain('X-Custom\n1\nx-custom\n2\nX-Empty\n\nAUTHORIZATION\nBearer client-key');
    expect(received.header('cookie')).toEqual(['a=1', 'b=2']);
    expect(received.header('user-agent')).toEqual(['test/1']);
  });

  test('a Content-Type is neither checked nor changed', async () => {
    const received = await requestWith(['Content-Type: text/plain; charset=x-unknown']);
    expect(received.header('content-type')).toEqual(['text/plain; charset=x-unknown']);
  });

  test('without a Content-Type none is made up', async () => {
    const received = await requestWith([]);
    expect(received.header('content-type')).toEqual([]);
  });

  test.for(['Keep-Alive: timeout=5', 'Proxy-Connection: keep-alive', 'TE: trailers', 'Upgrade: h2c'])(
    'the hop-by-hop field %s stays behind',
    async (line) => {
      const [name = ''] = line.split(':');
      const received = await requestWith([line]);
      expect(received.header(name)).toEqual([]);
    },
  );

  test('what Connection names stays behind, in every Connection field', async () => {
    const received = await requestWith([
      'Connection: keep-alive, X-One',
      'X-One: 1',
      'Connection: x-two',
      'X-Two: 2',
      'X-Three: 3',
    ]);

    expect(received.header('x-one')).toEqual([]);
    expect(received.header('x-two')).toEqual([]);
    expect(received.header('x-three')).toEqual(['3']);
    expect(received.header('connection').join()).not.toMatch(/x-/i);
  });

  test('Connection cannot name away what the gateway sends itself', async () => {
    const received = await requestWith([
      'Connection: X-Request-Id, traceparent, Content-Length, Host, X-Forwarded-For, Accept-Encoding',
    ]);

    expect(received.header('x-request-id')).toHaveLength(1);
    expect(received.header('traceparent')).toHaveLength(1);
    expect(received.header('content-length')).toEqual([String(BODY.length)]);
    expect(received.header('host')).toHaveLength(1);
    expect(received.header('x-forwarded-for')).toHaveLength(1);
  });

  test('Host is the replica, and X-Forwarded-Host the one the client asked for', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY, ['X-Forwarded-Host: forged']));

    const received = await replica.nextRequest();
    expect(received.header('host')).toEqual([new URL(replica.url).host]);
    expect(received.header('x-forwarded-host')).toEqual(['gateway']);
  });

  test('X-Forwarded-For is appended to, -Proto is set', async () => {
    const received = await requestWith([
      'X-Forwarded-For: 10.1.1.1',
      'X-Forwarded-For: 10.2.2.2',
      'X-Forwarded-Proto: https',
    ]);

    expect(received.header('x-forwarded-for')).toEqual(['10.1.1.1, 10.2.2.2, 127.0.0.1']);
    expect(received.header('x-forwarded-proto')).toEqual(['http']);
  });

  test("the client's own trace context is replaced: its trace is not joined", async () => {
    const incoming = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const received = await requestWith([
      `traceparent: ${incoming}`,
      'tracestate: vendor=1',
      'baggage: user=x',
      'X-Request-Id: mine',
    ]);

    const [traceparent = ''] = received.header('traceparent');
    expect(received.header('traceparent')).toHaveLength(1);
    expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    expect(traceparent).not.toContain('4bf92f3577b34da6a3ce929d0e0e4736');
    expect(received.header('tracestate')).toEqual([]);
    expect(received.header('baggage')).toEqual([]);
    expect(received.header('x-request-id')).not.toContain('mine');
  });

  test.for([
    'garbage',
    '',
    '00-00000000000000000000000000000000-0000000000000000-01',
    'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    `00-${'a'.repeat(5000)}-01`,
  ])('a malformed traceparent (%s) fails no request', async (value) => {
    const received = await requestWith([`traceparent: ${value}`]);
    expect(received.header('traceparent')).toEqual([
      expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
    ]);
  });

  test('two traceparents fail no request', async () => {
    const one = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const received = await requestWith([`traceparent: ${one}`, `traceparent: ${one}`]);
    expect(received.header('traceparent')).toHaveLength(1);
  });

  test('an answer without compression is asked for, whatever the client accepts', async () => {
    const received = await requestWith(['Accept-Encoding: gzip, br', 'Accept: text/event-stream']);
    expect(received.header('accept-encoding')).toEqual(['identity']);
    expect(received.header('accept')).toEqual(['text/event-stream']);
  });

  test("a replica's own api_key replaces every Authorization of the client", async () => {
    const received = await requestWith(['Authorization: Bearer client-key', 'authorization: Bearer other'], {
      api_key: 'replica-key',
    });
    expect(received.header('authorization')).toEqual(['Bearer replica-key']);
  });

  test('bytes beyond ASCII in a value arrive as the same bytes', async () => {
    const received = await requestWith(['X-Latin: caf\xe9', 'X-Utf8: caf\xc3\xa9']);
    expect(received.header('x-latin')).toEqual(['caf\xe9']);
    expect(received.header('x-utf8')).toEqual(['caf\xc3\xa9']);
  });

  test('Expect is answered by the gateway and not passed on', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(
      gateway.url,
      postBytes('/v1/chat/completions', BODY, ['Expect: 100-continue']),
    );

    expect(response.status).toBe(100);
    expect((await replica.nextRequest()).header('expect')).toEqual([]);
  });

  test('an expectation that is not 100-continue costs nothing', async () => {
    const received = await requestWith(['Expect: something-else']);
    expect(received.header('expect')).toEqual([]);
  });
});
