import { describe, expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { callUnderName } from './call-under-name.ts';

const authorized = { Authorization: `Bearer ${ADMIN_TOKEN}` };

const codeOf = async (response: Response) =>
  ((await response.json()) as { readonly error: { readonly code: string } }).error.code;

/** What GET of this path answers under another name. */
const callAs = (gateway: StartedGateway, host: string, path: string) =>
  callUnderName(gateway.adminUrl + path, { host, headers: authorized });

describe('a name that another site can let point here', () => {
  test('gets neither the page nor its files nor data, with or without a token', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    for (const path of [
      '/',
      '/dashboard/0/app/main.js',
      '/admin/replicas',
      '/metrics',
      '/openapi.json',
      '/no',
    ]) {
      const response = await callAs(gateway, 'rebound.example:9090', path);
      expect(response.status, path).toBe(421);
      expect(await codeOf(response), path).toBe('host_not_allowed');
    }
    const withoutToken = await callUnderName(`${gateway.adminUrl}/admin/stats`, { host: 'rebound.example' });
    expect(withoutToken.status).toBe(421);
    for (const host of ['10.9.8.7', 'localhost:1', '[::1]', '']) {
      expect((await callAs(gateway, host, '/')).status, host).toBe(200);
    }
  });

  test('is one of the configured names after a reload', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    expect((await callAs(gateway, 'gw.example.com', '/')).status).toBe(421);
    gateway.writeConfig({ config: { gateway: { admin_hosts: ['gw.example.com'] } } });
    expect(await (await gateway.reload()).json()).toMatchObject({ changed: ['gateway.admin_hosts'] });
    expect((await callAs(gateway, 'gw.example.com', '/')).status).toBe(200);
  });
});

test('wrong tokens are limited, counted and logged once, and who was right from there stays in', async () => {
  await using replica = await startFakeReplica();
  const later = { name: 'later', role: 'reader' as const, token: 'another-token-here' };
  await using gateway = await startGateway({ replicas: [replica], moreTokens: [later] });
  const callWith = (token: string) =>
    fetch(`${gateway.adminUrl}/admin/stats`, { headers: { Authorization: `Bearer ${token}` } });
  expect((await gateway.admin('/admin/stats')).status).toBe(200);
  const responses = await Promise.all(Array.from({ length: 40 }, (_, index) => callWith(`guess-${index}`)));
  const limited = responses.filter(({ status }) => status === 429);
  expect(limited.length).toBeGreaterThan(20);
  expect(responses.filter(({ status }) => status === 401)).toHaveLength(40 - limited.length);
  expect(limited[0]?.headers.get('retry-after')).toBe('1');
  expect(await codeOf(limited[0] ?? Response.error())).toBe('too_many_wrong_tokens');
  expect((await gateway.admin('/admin/stats')).status).toBe(200);

  const metrics = await (await gateway.admin('/metrics')).text();
  expect(metrics).toMatch(/^gateway_admin_wrong_tokens_total(?:\{[^}]*\})? 40$/m);
  const lines = gateway.logLines.filter((line) => line.includes('wrong admin token'));
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([{ source: '127.0.0.1', failed: 1 }]);
  expect(gateway.logLines.join()).not.toContain('guess-');
});

describe('every response', () => {
  const EXPECTED = {
    'cross-origin-embedder-policy': 'require-corp',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': expect.stringContaining('camera=()'),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'content-security-policy': expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'/),
  };

  test('has the security headers, and data is stored nowhere', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const page = await fetch(`${gateway.adminUrl}/`);
    const [script = ''] = /dashboard\/\w+\/app\/main\.js/.exec(await page.text()) ?? [];
    const responses = await Promise.all([
      fetch(`${gateway.adminUrl}/${script}`),
      fetch(`${gateway.adminUrl}/admin/stats`),
      ...['/admin/stats', '/metrics', '/admin/unknown', '/openapi.json'].map((path) => gateway.admin(path)),
    ]);
    for (const response of [page, ...responses]) {
      const headers = Object.fromEntries(response.headers);
      expect(headers, response.url).toMatchObject(EXPECTED);
      expect(headers['content-security-policy']).not.toContain('unsafe');
      expect(headers).not.toHaveProperty('strict-transport-security');
      expect(headers).not.toHaveProperty('server');
    }
    for (const response of responses.slice(1)) {
      expect(response.headers.get('cache-control'), response.url).toBe('no-store');
    }
  });
});
