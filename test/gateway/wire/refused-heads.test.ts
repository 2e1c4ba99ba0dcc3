import { expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const health = (host: string) => `GET /healthz HTTP/1.1\r\nHost:${host}\r\n\r\n`;
const line = (requestLine: string) => `${requestLine}\r\nHost: g\r\n\r\n`;

const malformed: readonly (readonly [name: string, bytes: string])[] = [
  ...[
    ' a b@c',
    ' a b',
    ' user@g',
    ' g/x',
    ' g?x',
    ' g#x',

    ' g\\x',
    ' <g>',
    ' [::1',
    ' ::1',
    ' g:80:80',
  ].map((host) => [`Host:${host}`, health(host)] as const),
  ...[' g:x', ' g:-1', ' g:80x', ' "g"', ' g\xe9', ' %', ' g%2'].map(
    (host) => [`Host:${host}`, health(host)] as const,
  ),
  ...[
    'RTSP/1.0',
    'ICE/1.0',
    'HTTP/1.10',
    'HTTP/01.1',
    'http/1.1',
    'HTTP/2.0',
    'HTTP/0.9',
    'HTTPS/1.1',
    'HTTP/1',
  ].map((version) => [`GET / ${version}`, line(`GET / ${version}`)] as const),
  ['a request line with two spaces', line('GET  / HTTP/1.1')],
  ['a request line with a tab', line('GET\t/ HTTP/1.1')],
  ['a request line that ends in a space', line('GET / HTTP/1.1 ')],
  ['a target that is no path', line('GET healthz HTTP/1.1')],
  ['a method in lower case', line('get /healthz HTTP/1.1')],
  ['a target beyond ASCII', line('GET /\xe9 HTTP/1.1')],
];

test.for(malformed)('%s is 400, closed, and reaches no replica', async ([, bytes]) => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  using connection = await RawConnection.open(gateway.url);

  connection.write(bytes);
  const response = await connection.readResponse();

  expect(response.status).toBe(400);
  expect(response.header('connection')).toEqual(['close']);
  expect(JSON.parse(response.body.toString())).toMatchObject({ error: { type: 'invalid_request_error' } });
  expect((await connection.readToClose()).toString('latin1')).toBe('');
  expect(replica.requests).toEqual([]);
});

test.for([
  ...[
    '',
    ' g',
    ' g:8080',
    ' G.example.',
    ' 127.0.0.1:80',
    ' [::1]',
    ' [::1]:8080',
    ' a_b',
    ' xn--bcher-kva.example',
  ],
  ...[' g:', ' a~b', ' %20', '\tg\t'],
])('Host:%s is a host', async (host) => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });

  expect((await exchangeRaw(gateway.url, health(host))).status).toBe(200);
});

test('a line end before a request is no request', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  using connection = await RawConnection.open(gateway.url);

  for (let round = 0; round < 2; round++) {
    connection.write(
      Buffer.concat([Buffer.from('\r\n'), postBytes('/v1/chat/completions', '{"model":"m"}')]),
    );
    expect((await connection.readResponse()).status).toBe(200);
  }
});
