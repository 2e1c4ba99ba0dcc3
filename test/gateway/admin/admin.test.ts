import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chatChunk, DONE, hang, startFakeReplica } from '../../support/fake-replica.ts';
import { createStreamGate } from '../../support/gates.ts';
import { stateAfterKill } from '../../support/processes/state-after-kill.ts';
import { exchangeRaw } from '../../support/raw-http.ts';
import { ADMIN_TOKEN, startGateway } from '../../support/start-gateway.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
const POST = { method: 'POST' };

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
    ['POST /admin/replicas', 'not_found'],
    ['DELETE /admin/replicas/a', 'not_found'],
    ['GET /admin/replicas/a/drain', 'not_found'],
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
    expect((await gateway.admin('/admin/replicas/a/drain', { method: 'HEAD' })).status).toBe(404);
    expect(await gateway.replicas()).toMatchObject([{ drained: false }]);
  });

  test('a page of another origin is not let in: OPTIONS has no answer', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const preflight = ['Origin: http://elsewhere', 'Access-Control-Request-Method: POST'];

    expect((await call(gateway.adminUrl, 'OPTIONS /admin/replicas', preflight)).status).toBe(401);
    const response = await call(gateway.adminUrl, 'OPTIONS /admin/replicas', [...preflight, ...withToken]);
    expect(response.status).toBe(404);
    expect(response.header('access-control-allow-origin')).toEqual([]);
  });
});

describe('GET /admin/replicas', () => {
  test('shows each replica in configured order, with what is known of it and no key', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({
      replicas: [
        {
          name: 'a',
          url: a.url,
          host: 'gpu-1',
          gpu_model: 'H100',
          gpu_count: 8,
          engine: 'vllm',
          api_key: 'secret-key',
        },
        { name: 'b', url: `${a.url}/prefix/`, models: ['*'] },
      ],
    });

    for (const name of ['a', 'b']) await gateway.untilReachability(name, 'reachable');
    const response = await gateway.admin('/admin/replicas');

    expect(response.headers.get('content-type')).toBe('application/json');
    const text = await response.text();
    expect(text).not.toContain('secret-key');
    expect(JSON.parse(text)).toEqual({
      replicas: [
        {
          name: 'a',
          url: a.url,
          host: 'gpu-1',
          gpu_model: 'H100',
          gpu_count: 8,
          drained: false,
          inflight: 0,
          max_inflight: null,
          health: null,
          health_reasons: [],
          health_since: null,
          models: ['m'],
          engine: 'vllm',
          since: null,
          reachability: 'reachable',
          reachability_since: expect.stringMatching(/Z$/),
          reachability_reason: null,
          reason: null,
          safe_to_stop: false,
          ramp: null,
          removing: false,
        },
        {
          name: 'b',
          url: `${a.url}/prefix`,
          host: '127.0.0.1',
          gpu_model: null,
          gpu_count: null,
          drained: false,
          inflight: 0,
          max_inflight: null,
          health: null,
          health_reasons: [],
          health_since: null,
          models: ['*'],
          engine: 'openai',
          since: null,
          reachability: 'reachable',
          reachability_since: expect.stringMatching(/Z$/),
          reachability_reason: null,
          reason: null,
          safe_to_stop: false,
          ramp: null,
          removing: false,
        },
      ],
      sources: [],
      waiting: 0,
    });
  });

  test('counts in flight what holds a lease: waiting, streaming, and no more when it ended', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startGateway({ replicas: [replica] });
    const leave = new AbortController();
    const waiting = Array.from({ length: 3 }, () =>
      gateway.chat({}, { signal: leave.signal }).catch(() => undefined),
    );
    await replica.untilRequests(3);

    expect(await gateway.replicas()).toMatchObject([{ inflight: 3 }]);

    leave.abort();
    await Promise.all(waiting);
    await gateway.waitForRecords(3);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
  });
});

describe('drain and undrain', () => {
  test('answer with the replica and the state before the call, and are idempotent', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const answers: unknown[] = [];
    for (const action of ['undrain', 'drain', 'drain', 'undrain', 'undrain']) {
      const response = await gateway.admin(`/admin/replicas/a/${action}`, POST);
      expect(response.status).toBe(200);
      answers.push(await response.json());
    }

    expect(answers).toMatchObject([
      { was_drained: false, replica: { name: 'a', drained: false, safe_to_stop: false } },
      { was_drained: false, replica: { drained: true, safe_to_stop: true, inflight: 0 } },
      { was_drained: true, replica: { drained: true } },
      { was_drained: true, replica: { drained: false, safe_to_stop: false } },
      { was_drained: false, replica: { drained: false } },
    ]);
  });

  test('since is the time of the last change', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    await gateway.admin('/admin/replicas/a/drain', POST);
    const [drained] = await gateway.replicas();
    await gateway.admin('/admin/replicas/a/drain', POST);
    const [again] = await gateway.replicas();

    expect(drained?.since).toMatch(RFC_3339);
    expect(again?.since).toBe(drained?.since);
  });

  test('once drain has answered, no new request reaches the replica, and open streams finish', async () => {
    const gate = createStreamGate([chatChunk('one')], DONE);
    await using a = await startFakeReplica({ name: 'a', script: gate.script });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a, b] });
    const stream = await gateway.chat({ stream: true });

    const answer = await (await gateway.admin('/admin/replicas/a/drain', POST)).json();
    expect(answer).toMatchObject({ replica: { drained: true, inflight: 1, safe_to_stop: false } });
    for (let i = 0; i < 4; i++) await (await gateway.chat()).text();
    expect(a.requests).toHaveLength(1);
    expect(b.requests).toHaveLength(4);

    gate.open();
    expect(await stream.text()).toBe(chatChunk('one') + DONE);
    await gateway.waitForRecords(5);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0, safe_to_stop: true }, {}]);
  });

  test('a name is read percent-decoded', async () => {
    await using replica = await startFakeReplica({ name: 'vllm-a.1' });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await gateway.admin('/admin/replicas/vllm%2Da%2E1/drain', POST);

    expect(response.status).toBe(200);
    expect(await gateway.replicas()).toMatchObject([{ drained: true }]);
  });

  test('every action is logged', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await gateway.admin('/admin/replicas/a/drain', POST);
    await gateway.admin('/admin/replicas/a/undrain', POST);

    const actions = gateway.logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(actions).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ action: 'drain', replica: 'a', was_drained: false }),
        expect.objectContaining({ action: 'undrain', replica: 'a', was_drained: true }),
      ]),
    );
    expect(gateway.logLines.join('\n')).not.toContain(ADMIN_TOKEN);
  });
});

describe('a restart', () => {
  const temporaryStateDir = async () => join(await temporaryFolder(), 'state');

  test('keeps drains and their time, and forgets no undrain', async () => {
    const stateDir = await temporaryStateDir();
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using first = await startGateway({ replicas: [a, b], stateDir });
    for (const path of ['a/drain', 'b/drain', 'b/undrain'])
      await first.admin(`/admin/replicas/${path}`, POST);
    const before = await first.replicas();
    await first.close();

    await using second = await startGateway({ replicas: [a, b], stateDir });

    expect(await second.replicas()).toEqual(before);
    await (await second.chat()).text();
    expect(a.requests).toEqual([]);
  });

  test('without an end in order keeps them as well: they are on disk when drain answers', async () => {
    const stateDir = await temporaryStateDir();
    await using replica = await startFakeReplica();
    await using first = await startGateway({ replicas: [replica], stateDir });
    await first.admin('/admin/replicas/a/drain', POST);

    await using second = await startGateway({
      replicas: [replica],
      stateDir: await stateAfterKill(stateDir),
    });

    expect(await second.replicas()).toMatchObject([{ drained: true }]);
  });

  test('after many changes at once shows the last one', async () => {
    const stateDir = await temporaryStateDir();
    await using replica = await startFakeReplica();
    await using first = await startGateway({ replicas: [replica], stateDir });
    const actions = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? 'undrain' : 'drain'));
    await Promise.all(actions.map((action) => first.admin(`/admin/replicas/a/${action}`, POST)));
    const before = await first.replicas();

    await using second = await startGateway({
      replicas: [replica],
      stateDir: await stateAfterKill(stateDir),
    });

    expect(await second.replicas()).toEqual(before);
  });

  test('finds a state_dir that nobody else can read', async () => {
    const stateDir = await temporaryStateDir();
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], stateDir, hashSalt: '' });
    await gateway.admin('/admin/replicas/a/drain', POST);

    expect((await stat(stateDir)).mode & 0o777).toBe(0o700);
    expect((await stat(join(stateDir, 'salt'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(stateDir, 'salt'), 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
    expect((await stat(join(stateDir, 'drains.json'))).mode & 0o777).toBe(0o600);
  });
});

describe('figures of the admin API', () => {
  test.each([1, 2])('workers: %i: they hold every request that has ended', async (workers) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: { gateway: { workers } } });

    for (let count = 1; count <= 10; count++) {
      await (await gateway.chat()).text();

      expect(await gateway.stats()).toMatchObject({ recorded: count, lost: 0 });
      const { records } = (await (await gateway.admin('/admin/records')).json()) as { records: object[] };
      expect(records).toHaveLength(count);
    }
  });
});

describe('GET /admin/stats', () => {
  test('shows all counters, which add up', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    for (let i = 0; i < 3; i++) await (await gateway.chat()).text();
    await gateway.waitForRecords(3);

    const stats = await gateway.stats();

    expect(Object.keys(stats)).toEqual(
      expect.arrayContaining(['exported', 'dropped', 'queued', 'failed_calls', 'recorded', 'rejected']),
    );
    const { recorded = 0, exported = 0, queued = 0, dropped, failed_calls, rejected } = stats;
    expect({ recorded, dropped, failed_calls, rejected }).toEqual({
      recorded: 3,
      dropped: 0,
      failed_calls: 0,
      rejected: 0,
    });
    expect(exported + queued).toBe(3);
  });
});

test('the client-facing port in use is one clear line', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  const listen = gateway.url.replace('http://', '');

  await expect(startGateway({ replicas: [replica], config: { gateway: { listen } } })).rejects.toThrow(
    /^gateway\.listen 127\.0\.0\.1:\d+: .*in use: .*$/,
  );
  await expect(
    startGateway({ replicas: [replica], config: { gateway: { admin_listen: listen } } }),
  ).rejects.toThrow(/^gateway\.admin_listen 127\.0\.0\.1:\d+: .*in use: .*$/);
});
