import { describe, expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw } from '#testkit/raw-http.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';

const CALLS = [
  'GET /admin/replicas',
  'GET /admin/stats',
  'POST /admin/replicas/a/drain',
  'POST /admin/replicas/a/undrain',
  'POST /admin/replicas/nobody/drain',
  'GET /admin/unknown',
] as const;

const call = (url: string, target: string, fields: readonly string[] = []) =>
  exchangeRaw(
    url,
    `${[`${target} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...fields].join('\r\n')}\r\n\r\n`,
  );

const errorOf = (body: Buffer) => (JSON.parse(body.toString()) as { error: unknown }).error;

describe('authentication', () => {
  test.for(CALLS)('%s without a configured token is refused with 403, whatever is sent', async (target) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], adminToken: null });

    for (const fields of [[], ['Authorization: Bearer '], [`Authorization: Bearer ${ADMIN_TOKEN}`]]) {
      const response = await call(gateway.adminUrl, target, fields);
      expect(response.status).toBe(403);
      expect(errorOf(response.body)).toEqual({
        message: expect.any(String),
        type: 'invalid_request_error',
        param: null,
        code: 'admin_disabled',
      });
    }
  });

  test('an empty token is no token', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], adminToken: '' });

    const response = await call(gateway.adminUrl, 'GET /admin/stats', ['Authorization: Bearer ']);

    expect(response.status).toBe(403);
  });

  test.for([
    ['nothing', []],
    ['another token', ['Authorization: Bearer wrong']],
    ['a longer token', [`Authorization: Bearer ${ADMIN_TOKEN}x`]],
    ['a shorter token', [`Authorization: Bearer ${ADMIN_TOKEN.slice(0, -1)}`]],
    ['the token in other case', [`Authorization: Bearer ${ADMIN_TOKEN.toUpperCase()}`]],
    ['the token without its scheme', [`Authorization: ${ADMIN_TOKEN}`]],
    ['another scheme', [`Authorization: Basic ${ADMIN_TOKEN}`]],
    ['an empty token', ['Authorization: Bearer']],
    ['a wrong one before the right one', ['Authorization: Bearer x', `Authorization: Bearer ${ADMIN_TOKEN}`]],
    ['the token in another field', [`X-Api-Key: ${ADMIN_TOKEN}`]],
    ['bytes beyond ASCII', ['Authorization: Bearer \xff\xfe']],
  ] as const)('%s is refused with 401 and changes nothing', async ([, fields]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    for (const target of CALLS) {
      const response = await call(gateway.adminUrl, target, fields);
      expect(response.status, target).toBe(401);
      expect(response.header('www-authenticate')).toEqual([expect.stringMatching(/^Bearer\b/)]);
      expect(errorOf(response.body)).toMatchObject({ code: 'unauthorized', type: 'invalid_request_error' });
    }
    expect(await gateway.replicas()).toMatchObject([{ drained: false }]);
  });

  test('the scheme is read in any case (RFC 9110 11.1)', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await call(gateway.adminUrl, 'GET /admin/stats', [
      `Authorization: bearer ${ADMIN_TOKEN}`,
    ]);

    expect(response.status).toBe(200);
  });

  test('the token is no key to the client-facing listener, nor are its paths there', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const fields = [`Authorization: Bearer ${ADMIN_TOKEN}`];
    expect((await call(gateway.url, 'GET /admin/replicas', fields)).status).toBe(404);
    expect((await call(gateway.adminUrl, 'GET /v1/models', fields)).status).toBe(404);
    expect(replica.requests).toEqual([]);
  });
});

describe('what is not there', () => {
  test.for([
    ['GET /admin/unknown', 'not_found'],
    ['GET /admin/replicas/', 'not_found'],
    ['POST /admin/replicas/a/kill', 'not_found'],
    ['POST /admin/replicas/a/drain/', 'not_found'],
    ['POST /admin/replicas/b/drain', 'replica_not_found'],
    ['POST /admin/replicas/A/undrain', 'replica_not_found'],
    ['POST /admin/replicas/%61%zz/drain', 'replica_not_found'],
    ['POST /admin/replicas/__proto__/drain', 'replica_not_found'],
  ] as const)('%s is a 404 %s', async ([target, code]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await call(gateway.adminUrl, target, [
      `Authorization: Bearer ${ADMIN_TOKEN}`,
      'Content-Length: 0',
    ]);

    expect(response.status).toBe(404);
    expect(errorOf(response.body)).toMatchObject({ code, type: 'invalid_request_error' });
    expect(await gateway.replicas()).toMatchObject([{ drained: false }]);
  });
});

test.for([
  ['POST /admin/replicas', 'GET, HEAD'],
  ['DELETE /admin/replicas/a', 'GET, HEAD'],
  ['GET /admin/replicas/a/drain?wait=1h', 'POST'],
  ['OPTIONS /admin/stats', 'GET, HEAD'],
] as const)('%s is a 405 that allows %s, for those with a token', async ([target, allow]) => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  const fields = [`Authorization: Bearer ${ADMIN_TOKEN}`, 'Content-Length: 0'];
  const response = await call(gateway.adminUrl, target, fields);
  expect(response.status).toBe(405);
  expect(response.header('allow')).toEqual([allow]);
  const [method = '', path = ''] = target.split(/[ ?]/);
  expect(errorOf(response.body)).toMatchObject({
    code: 'method_not_allowed',
    message: `\`${path}\` does not take \`${method}\`, but ${allow}.`,
  });
  expect((await call(gateway.adminUrl, target, fields.slice(1))).status).toBe(401);
  expect(await gateway.replicas()).toMatchObject([{ drained: false }]);
});

describe('a name that no replica has', () => {
  async function messageOf(names: readonly string[], path: string): Promise<string> {
    const replicas = names.map((name, index) => ({ name, url: `http://127.0.0.1:${index + 1}` }));
    await using gateway = await startGateway({ replicas });
    const response = await gateway.admin(path, { method: /drain$|forget$/.test(path) ? 'POST' : 'GET' });
    return ((await response.json()) as { error: { message: string } }).error.message;
  }

  test('gets the name that was probably meant, and those there are', async () => {
    const names = ['vllm-a', 'embed-b'];
    const meant = 'No replica has this name. Did you mean vllm-a? Known: vllm-a, embed-b.';
    expect(await messageOf(names, '/admin/replicas/vlm_a/drain')).toBe(meant);
    expect(await messageOf(names, '/admin/replicas/VLLM-A/undrain')).toBe(meant);
    expect(await messageOf(names, '/admin/replicas/vllma')).toBe(meant);
  });

  test('gets the names that there are, up to eight', async () => {
    expect(await messageOf(['vllm-a', 'b'], '/admin/replicas/x/drain')).toBe(
      'No replica has this name. Known: vllm-a, b.',
    );
    const names = Array.from({ length: 10 }, (_, index) => `vllm-${index}`);
    expect(await messageOf(names, '/admin/replicas/embeddings/drain')).toBe(
      `No replica has this name. Known: ${names.slice(0, 8).join(', ')} and 2 more.`,
    );
    expect(await messageOf(['a'], `/admin/replicas/${'x'.repeat(5_000)}/drain`)).toContain('Known: a.');
    expect(await messageOf(['a'], '/admin/gateways/nobody/forget')).toMatch(/^No gateway .* Known: \S+\.$/);
  });
});

describe('methods', () => {
  const withToken = [`Authorization: Bearer ${ADMIN_TOKEN}`];

  test('HEAD asks what GET answers, without the body (RFC 9110 9.3.2)', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const get = await gateway.admin('/admin/gateways');
    const head = await gateway.admin('/admin/gateways', { method: 'HEAD' });

    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(await get.text())));
    expect((await gateway.admin('/admin/replicas/a/drain', { method: 'HEAD' })).status).toBe(405);
    expect(await gateway.replicas()).toMatchObject([{ drained: false }]);
  });

  test('a page of another origin is not let in: OPTIONS is a method like others', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const preflight = ['Origin: http://elsewhere', 'Access-Control-Request-Method: POST'];

    expect((await call(gateway.adminUrl, 'OPTIONS /admin/replicas', preflight)).status).toBe(401);
    const response = await call(gateway.adminUrl, 'OPTIONS /admin/replicas', [...preflight, ...withToken]);
    expect(response.status).toBe(405);
    expect(response.header('access-control-allow-origin')).toEqual([]);
  });
});
