import { describe, expect, test } from 'vitest';
import { RECORD_FIELDS } from '#otel/record/registry';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { overviewSchema } from '../../../src/admin/dashboard/overview.ts';
import { recordSchema } from '../../../src/admin/record-schema.ts';
import { toRecordJson } from '../../../src/admin/shown-record.ts';

const PATHS = /(?:href|src)="([^"]+)"/g;

/** The page, and the paths that it loads, each once. */
async function loadPage(gateway: StartedGateway) {
  const response = await fetch(`${gateway.adminUrl}/`);
  const text = await response.text();
  const paths = new Set([...text.matchAll(PATHS)].map(([, path = '']) => `/${path}`));
  return { response, text, paths: [...paths] };
}

const getJson = async (gateway: StartedGateway, path: string) => (await gateway.admin(path)).json();

describe('the page', () => {
  test('is served with and without a token, also where none is configured', async () => {
    await using replica = await startFakeReplica();
    for (const options of [{}, { adminToken: null }]) {
      await using gateway = await startGateway({ replicas: [replica], ...options });
      const { response } = await loadPage(gateway);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect((await gateway.admin('/')).status).toBe(200);
    }
  });

  test('allows scripts and styles of its own listener only, and no frame around it', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const { response, text } = await loadPage(gateway);
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy.split('; ')).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
      ]),
    );
    expect(policy).not.toContain('unsafe');
    expect(text).not.toMatch(/<script>|<style|\son\w+=|style=/);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('loads files that are there, of the right type, and can be kept for ever', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const { paths } = await loadPage(gateway);
    expect(paths.length).toBeGreaterThan(4);
    for (const path of [...paths, paths[0]?.replace(/[^/]+\/[^/]+$/, 'replicas/order.js') ?? '']) {
      const response = await fetch(gateway.adminUrl + path);
      expect(response.status, path).toBe(200);
      expect(response.headers.get('cache-control')).toContain('immutable');
      const type = response.headers.get('content-type');
      if (path.endsWith('.js')) expect(type).toBe('text/javascript; charset=utf-8');
      else expect(type).toMatch(/^(?:text\/css; charset=utf-8|image\/svg\+xml)$/);
      await response.arrayBuffer();
    }
  });

  test.each([
    'styles/index.html',

    'app/tsconfig.json',
    'app/..%2f..%2fassets.ts',
    'app/nothing.js',
  ])('has no file %s', async (name) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const { paths } = await loadPage(gateway);
    const path = paths[0]?.replace(/[^/]+\/[^/]+$/, name);
    expect((await fetch(gateway.adminUrl + path)).status).toBe(404);
  });

  test('has no files under another version', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    expect((await fetch(`${gateway.adminUrl}/dashboard/0123456789abcdef/app/main.js`)).status).toBe(404);
  });
});

describe('GET /admin/records', () => {
  test('answers the latest records, newest first, as they were recorded', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await gateway.chat({}, { headers: { 'X-Tenant': 'acme' } });
    await gateway.chat({ model: 'nobody' });
    await gateway.chat({ max_tokens: 7 });
    await gateway.waitForRecords(3);
    const newestFirst = gateway.records.toReversed().map((record) => toRecordJson(record));
    const { gateway: identity } = (await getJson(gateway, '/admin/overview')) as {
      readonly gateway: { readonly started_at: string };
    };
    expect(await getJson(gateway, '/admin/records')).toEqual({
      records: newestFirst,
      last_record: 3,
      started_at: identity.started_at,
    });
    const { records } = (await getJson(gateway, '/admin/records?limit=1')) as { records: unknown };
    expect(records).toEqual(newestFirst.slice(0, 1));
  });

  test.each(['0', '-1', 'all', '1.5', '', '99999'])('refuses limit=%s', async (limit) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const response = await gateway.admin(`/admin/records?limit=${limit}`);
    expect(response.status).toBe(400);
    const message = 'limit: a whole number from 1 to 9999';
    expect(await response.json()).toMatchObject({
      error: { code: 'invalid_request', param: 'limit', message },
    });
  });

  test('shows every field that a record can have', () => {
    expect(Object.keys(recordSchema.shape)).toEqual(expect.arrayContaining(Object.keys(RECORD_FIELDS)));
  });

  test('needs the token', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    for (const path of ['/admin/records', '/admin/overview']) {
      expect((await fetch(gateway.adminUrl + path)).status).toBe(401);
    }
  });
});

describe('GET /admin/overview', () => {
  test('has the figures of each replica and of all, and the records', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a, { ...b, models: ['n'] }] });
    for (const model of ['m', 'm', 'n', 'nobody']) await gateway.chat({ model });
    await gateway.waitForRecords(4);
    const overview = overviewSchema.parse(await getJson(gateway, '/admin/overview'));
    expect(overview).toMatchObject({
      last_minute: { requests: 4, errors: 0 },
      replicas: [
        { name: 'a', last_minute: { requests: 2 } },
        { name: 'b', last_minute: { requests: 1 } },
      ],
      stats: { recorded: 4 },
      queue_size: 16_384,
      trace_url_template: null,
      last_record: 4,
    });
    expect(overview.records.map(({ model }) => model)).toEqual(['nobody', 'n', 'm', 'm']);
    expect(overview.last_minute.output_tokens_per_s).toBeGreaterThan(0);
    expect(overview.last_minute.latency_p95_ms).toBeGreaterThan(0);
  });

  test('has the template of the links to traces that the last reload read', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const template = 'https://traces.example/{trace_id}';
    gateway.writeConfig({ config: { trace: { url_template: template } } });
    expect(await (await gateway.reload()).json()).toMatchObject({
      changed: ['trace.url_template'],
      needs_restart: [],
    });
    expect(await getJson(gateway, '/admin/overview')).toMatchObject({ trace_url_template: template });
  });

  test('has only the records after the number given', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await gateway.chat();
    await gateway.waitForRecords(1);
    expect(await getJson(gateway, '/admin/overview?after=1')).toMatchObject({ records: [], last_record: 1 });
    await gateway.chat({ max_tokens: 5 });
    await gateway.waitForRecords(2);
    expect(await getJson(gateway, '/admin/overview?after=1')).toMatchObject({
      records: [{ max_tokens: 5 }],
      last_record: 2,
    });
  });
});
