import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '#testkit/servers/local-server.ts';
import {
  createProbeConnections,
  pathPrefixOf,
  toTlsOptions,
} from '../../../src/replicas/data/connections.ts';

test.each([
  ['http://a:1', ''],
  ['http://a:1/', ''],
  ['http://a:1/base', '/base'],
  ['http://a:1/base/', '/base'],
  ['http://a:1/one/two//', '/one/two/'],
])('the path of %s goes before that of a request', (url, prefix) => {
  expect(pathPrefixOf(url)).toBe(prefix);
});

test('what is not said of certificates is left to Node', () => {
  expect(toTlsOptions({})).toStrictEqual({});
  expect(toTlsOptions({ tls: { verify: true, ca: null, cert: null, key: null } } as never)).toEqual({
    rejectUnauthorized: true,
  });
  const tls = { verify: false, ca: 'ca', cert: 'cert', key: 'key' };
  expect(toTlsOptions({ tlsName: 'name', tls } as never)).toEqual({
    servername: 'name',
    rejectUnauthorized: false,
    ca: 'ca',
    cert: 'cert',
    key: 'key',
  });
});

test('probes go to the origin of a url', async () => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? '');
    response.end('ok');
  });
  const port = await listen(server);
  onTestFinished(() => void server.close());
  const connections = createProbeConnections({ url: `http://127.0.0.1:${port}/base?x` } as never, 1_000);
  const { statusCode, body } = await connections.request({ method: 'GET', path: '/v1/models' });
  expect([statusCode, await body.text(), paths]).toEqual([200, 'ok', ['/v1/models']]);
  await connections.close();
});
