import { expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const BODY = '{"model":"m"}';
const SMUGGLED = 'GET /v1/models?smuggled HTTP/1.1\r\nHost: gateway\r\n\r\n';

/** A POST whose header lines, after Host, are given; the body follows as it is. */
function post(lines: readonly string[], body: string): string {
  const head = ['POST /v1/chat/completions HTTP/1.1', 'Host: gateway', ...lines].join('\r\n');
  return `${head}\r\n\r\n${body}`;
}

const length = `Content-Length: ${BODY.length}`;
const chunked = `d\r\n${BODY}\r\n0\r\n\r\n`;

/** One for each reader; all known forms are in lab/attacks, which lab/test/e2e/attacks.test.ts runs. */
const malformed: readonly (readonly [name: string, bytes: string])[] = [
  ['Content-Length before Transfer-Encoding', post([length, 'Transfer-Encoding: chunked'], chunked)],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  [
    'a chunk that is longer than its size',
    post(['Transfer-Encoding: chunked'], `5\r\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
  ],
];

test.for(malformed)('%s is refused with 400, closed, and reaches no replica', async ([, bytes]) => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  using connection = await RawConnection.open(gateway.url);

  connection.write(bytes);
  const response = await connection.readResponse();
  const rest = await connection.readToClose();

  expect(response.status).toBe(400);
  expect(rest.toString('latin1')).toBe('');
  expect(JSON.parse(response.body.toString())).toMatchObject({ error: { type: 'invalid_request_error' } });
  expect(replica.requests).toEqual([]);

  const good = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY));
  expect(good.status).toBe(200);
  await gateway.waitForRecords(1);
  await gateway.close();
  expect(gateway.records).toHaveLength(1);
  expect(replica.requests).toHaveLength(1);
});

test('headers beyond the limit are refused with 431 and closed', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica], config: { limits: { headers: '4KiB' } } });
  using connection = await RawConnection.open(gateway.url);

  connection.write(post([length, `X-A: ${'a'.repeat(5000)}`], BODY));
  const response = await connection.readResponse();
  await connection.readToClose();

  expect(response.status).toBe(431);
  expect(replica.requests).toEqual([]);
  const good = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY, ['X-A: a']));
  expect(good.status).toBe(200);
});

test('headers that never end are refused as soon as they pass the limit', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  using connection = await RawConnection.open(gateway.url);

  connection.write('GET /healthz HTTP/1.1\r\nHost: gateway\r\n');
  const line = `X-A: ${'a'.repeat(1000)}\r\n`;
  for (let i = 0; i < 40; i++) connection.write(line);

  expect((await connection.readResponse()).status).toBe(431);
  await connection.readToClose();
});

test('thousands of short fields within the limit all pass', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  const fields = Array.from({ length: 2500 }, (_, i) => `a${i}: 1`);

  const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY, fields));

  expect(response.status).toBe(200);
  const received = await replica.nextRequest();
  expect(received.header('a2499')).toEqual(['1']);
});

test('pipelined requests are answered in their order', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  using connection = await RawConnection.open(gateway.url);

  connection.write(postBytes('/v1/chat/completions', BODY));
  connection.write('GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n');
  connection.write(postBytes('/v1/chat/completions', '{"model":"unknown"}'));

  const statuses: number[] = [];
  for (let i = 0; i < 3; i++) statuses.push((await connection.readResponse()).status);
  expect(statuses).toEqual([200, 200, 404]);
  expect(await gateway.waitForRecords(2)).toHaveLength(2);
});

test('what follows a body is a request of its own, malformed or not, and changes nothing before it', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  using connection = await RawConnection.open(gateway.url);

  connection.write(postBytes('/v1/chat/completions', BODY));
  const first = await connection.readResponse();
  connection.write('bad\r\n\r\n');
  const second = await connection.readResponse();

  expect([first.status, second.status]).toEqual([200, 400]);
  await connection.readToClose();
});

test.for([
  ['without a Host', 'GET /healthz HTTP/1.1\r\n\r\n'],
  ['that is no HTTP', 'bad\r\n\r\n'],
  ['to CONNECT', 'CONNECT gateway:443 HTTP/1.1\r\nHost: gateway\r\n\r\n'],
] as const)('what is sent together with a refused request %s is not looked at', async ([, refused]) => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  using connection = await RawConnection.open(gateway.url);

  connection.write(Buffer.concat([Buffer.from(refused), postBytes('/v1/chat/completions', BODY)]));

  expect((await connection.readResponse()).status).toBeOneOf([400, 404]);
  expect((await connection.readToClose()).length).toBe(0);
  await gateway.close();
  expect(gateway.records).toEqual([]);
  expect(replica.requests).toEqual([]);
});
