import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readAdminTokens } from '#config/secrets';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { ROUTES } from '../../../src/admin/route-table.ts';

const READ_TOKEN = 'test-read-token-0001';

const call = (gateway: StartedGateway, method: string, path: string, token: string) =>
  fetch(gateway.adminUrl + path, { method, headers: { Authorization: `Bearer ${token}` } });

const codeOf = async (response: Response) =>
  ((await response.json()) as { readonly error: { readonly code: string } }).error.code;

/** A path of one rollout, or of the key of statements. There are none here. */
const isOfRollout = (path: string) => path.startsWith('/admin/rollouts/') || path === '/admin/statement-key';

/** The paths of the API that have this method, each with a name in it that exists, and the id of a record. */
const pathsOf = (method: 'GET' | 'POST', recordId = '') =>
  ROUTES.filter((route) => route.method === method && !route.isPage)
    .filter(({ path }) => method === 'POST' || !isOfRollout(path))
    .map(({ path }) => path.replace('{name}', 'a').replace('{id}', isOfRollout(path) ? '0000000a' : recordId))
    .map((path) => path.replace('/verdict', '/verdict?candidate=a&baseline=b'))
    .map((path) => path.replace('/statement-records', '/statement-records?tenant=acme&since=1h'));

/** Who reads may pass that on by a link; the exchange of its code takes no token. */
const isSignIn = (path: string) => path.startsWith('/admin/sign-in');

/** The id of the record of a request that this sends. */
async function makeRecord(gateway: StartedGateway): Promise<string> {
  await (await gateway.chat()).text();
  return (await gateway.nextRecord()).request_id;
}

/** The replicas of a gateway all of whose paths are called. */
const withPeer = (replica: FakeReplica) => [replica, { name: 'b', url: `${replica.url}/b` }];

describe('a read-only token', () => {
  test('reads everything and changes nothing', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    const config = { history: {} };
    await using gateway = await startGateway({ replicas: withPeer(replica), readToken: READ_TOKEN, config });
    for (const path of pathsOf('GET', await makeRecord(gateway))) {
      for (const method of ['GET', 'HEAD']) {
        const response = await call(gateway, method, path, READ_TOKEN);
        await response.arrayBuffer();
        expect(response.status, `${method} ${path}`).toBe(200);
      }
    }
    for (const path of pathsOf('POST').filter((each) => !isSignIn(each))) {
      const response = await call(gateway, 'POST', path, READ_TOKEN);
      expect(response.status, path).toBe(403);
      expect(await codeOf(response), path).toBe('read_only_token');
    }
    expect(await gateway.replicas()).toMatchObject([{ drained: false }, { drained: false }]);
    expect(gateway.logLines.join()).not.toContain(READ_TOKEN);
  });

  test('is enough for the page, which is told that it cannot change anything', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], readToken: READ_TOKEN });
    const overview = async (token: string) =>
      (await call(gateway, 'GET', '/admin/overview', token)).json() as Promise<unknown>;
    expect(await overview(READ_TOKEN)).toMatchObject({ can_change: false });
    expect(await overview(ADMIN_TOKEN)).toMatchObject({ can_change: true });
  });

  test('turns the admin API on for GETs where there is no admin token', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      adminToken: null,
      readToken: READ_TOKEN,
    });
    expect((await call(gateway, 'GET', '/metrics', READ_TOKEN)).status).toBe(200);
    expect(await codeOf(await call(gateway, 'POST', '/admin/reload', READ_TOKEN))).toBe('read_only_token');
    expect((await call(gateway, 'GET', '/metrics', ADMIN_TOKEN)).status).toBe(401);
    expect((await call(gateway, 'GET', '/metrics', '')).status).toBe(401);
    expect((await call(gateway, 'POST', '/admin/reload', `${READ_TOKEN}x`)).status).toBe(401);
  });
});

test('an error names the weakest token that is enough for the call', async () => {
  const moreTokens = [
    { name: 'olga', role: 'operator' as const, token: 'test-operator-token' },
    { name: 'pod', role: 'drainer' as const, token: 'test-drainer-token', replicas: ['b'] },
  ];
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await startGateway({ replicas: [replica], readToken: READ_TOKEN, moreTokens });
  const named = async (method: string, path: string, token: string) => {
    const { error } = (await (await call(gateway, method, path, token)).json()) as {
      error: { message: string };
    };
    return error.message.match(/(?<= needs the token in )SVC_[A-Z_]+(?=\.$)/)?.[0];
  };
  expect(await named('POST', '/admin/replicas/a/drain', READ_TOKEN)).toBe('SVC_OPERATOR_TOKEN');
  expect(await named('POST', '/admin/reload', READ_TOKEN)).toBe('SVC_ADMIN_TOKEN');
  expect(await named('POST', '/admin/reload', 'test-operator-token')).toBe('SVC_ADMIN_TOKEN');
  expect(await named('GET', '/admin/replicas', 'test-drainer-token')).toBe('SVC_READ_TOKEN');
  expect(await named('POST', '/admin/replicas/a/drain', 'test-drainer-token')).toBe('SVC_OPERATOR_TOKEN');
  const unknown = await (await call(gateway, 'GET', '/admin/replicas', 'wrong')).text();
  expect(unknown).toMatch(/A GET needs no more than the token in SVC_READ_TOKEN/);
});

describe('an operator token', () => {
  const OPERATOR_TOKEN = 'test-operator-token';
  const moreTokens = [{ name: 'olga', role: 'operator' as const, token: OPERATOR_TOKEN }];

  test('reads, drains and undrains, and does nothing else', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    const config = { history: {} };
    await using gateway = await startGateway({ replicas: withPeer(replica), moreTokens, config });
    for (const path of pathsOf('GET', await makeRecord(gateway))) {
      const response = await call(gateway, 'GET', path, OPERATOR_TOKEN);
      await response.arrayBuffer();
      expect(response.status, path).toBe(200);
    }
    const changes = await Promise.all(
      pathsOf('POST').map(async (path) => {
        const response = await call(gateway, 'POST', path, OPERATOR_TOKEN);
        return [path, response.status === 200 ? 'done' : await codeOf(response)];
      }),
    );
    expect(Object.fromEntries(changes)).toEqual({
      '/admin/replicas/a/drain': 'done',
      '/admin/replicas/a/probe': 'done',
      '/admin/replicas/a/shadow': 'done',
      '/admin/replicas/a/undrain': 'done',
      '/admin/replicas/a/unshadow': 'done',
      '/admin/rollouts/0000000a/abort': 'rollout_not_found',
      '/admin/rollouts/0000000a/continue': 'rollout_not_found',
      '/admin/rollouts/0000000a/pause': 'rollout_not_found',
      '/admin/rollouts/0000000a/report': 'invalid_request',
      '/admin/rollout-steps': 'invalid_request',
      '/admin/gateways/a/forget': 'admin_token_required',
      '/admin/reload': 'admin_token_required',
      '/admin/sign-in': 'unauthorized',
      '/admin/sign-in-links': 'done',
    });
    const overview = await call(gateway, 'GET', '/admin/overview', OPERATOR_TOKEN);
    expect(await overview.json()).toMatchObject({ can_change: true });
  });

  test('is named in the log and in the span of what it did, and never shown', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica], collector, moreTokens });
    await call(gateway, 'POST', '/admin/replicas/a/drain', OPERATOR_TOKEN);
    await gateway.reload();
    expect(JSON.parse(await gateway.untilLogged('"drain"'))).toMatchObject({ token_name: 'olga' });
    expect(JSON.parse(await gateway.untilLogged('reloaded'))).toMatchObject({ token_name: 'admin' });
    await collector.waitFor(({ spans }) => spans.length === 2);
    expect(collector.spans.map(({ name, attributes }) => [name, attributes['gateway.token_name']])).toEqual([
      ['drain', 'olga'],
      ['reload', 'admin'],
    ]);
    expect(JSON.stringify(collector.spans) + gateway.logLines.join()).not.toContain(OPERATOR_TOKEN);
  });
});

describe('tokens from files', () => {
  /** A gateway whose tokens are in two files, with a way to change them. */
  async function startWithFiles(replica: { readonly name: string; readonly url: string }) {
    const files = { admin: '', read: '' };
    const write = async (which: keyof typeof files, text: string) => writeFile(files[which], text);
    const gateway = await startGateway({
      replicas: [replica],
      readToken: READ_TOKEN,
      readSecrets: async () => {
        const env = { SVC_ADMIN_TOKEN_FILE: files.admin, SVC_READ_TOKEN_FILE: files.read };
        return { tokens: (await readAdminTokens(env)).tokens };
      },
    });
    files.admin = join(gateway.stateDir, 'admin-token');
    files.read = join(gateway.stateDir, 'read-token');
    await write('admin', ADMIN_TOKEN);
    await write('read', READ_TOKEN);
    return { gateway, write };
  }

  test('are read again by a reload, and connections stay open', async () => {
    await using replica = await startFakeReplica();
    const { gateway, write } = await startWithFiles(replica);
    await using _gateway = gateway;
    using agent = new KeptConnection(gateway.adminUrl);
    expect(await agent.get(ADMIN_TOKEN)).toBe(200);
    await write('admin', 'next-admin-token-1\n');
    await write('read', 'next-read-token-01\n');

    const answer = await call(gateway, 'POST', '/admin/reload', ADMIN_TOKEN);
    expect(await answer.json()).toMatchObject({ changed: ['SVC_ADMIN_TOKEN_FILE', 'SVC_READ_TOKEN_FILE'] });
    expect(await agent.get(ADMIN_TOKEN)).toBe(401);
    expect(await agent.get(READ_TOKEN)).toBe(401);
    expect(await agent.get('next-admin-token-1')).toBe(200);
    expect(await agent.get('next-read-token-01')).toBe(200);
    expect(agent.connections).toBe(1);
    expect(gateway.logLines.join()).not.toMatch(/next-(?:admin|read)-token/);
    const again = await call(gateway, 'POST', '/admin/reload', 'next-admin-token-1');
    expect(await again.json()).toMatchObject({ changed: [] });
  });

  test('can hold an old and a new one, which are both valid, and the log says which one was used', async () => {
    await using replica = await startFakeReplica();
    const { gateway, write } = await startWithFiles(replica);
    await using _gateway = gateway;
    await write('admin', `old: ${ADMIN_TOKEN}\nnew: next-admin-token-1\n`);
    await gateway.reload();
    for (const token of ['next-admin-token-1', ADMIN_TOKEN]) {
      expect((await call(gateway, 'GET', '/admin/stats', token)).status).toBe(200);
    }
    await write('admin', 'new: next-admin-token-1\n');
    await call(gateway, 'POST', '/admin/reload', 'next-admin-token-1');
    expect(JSON.parse(await gateway.untilLogged('"token_name":"new"'))).toMatchObject({
      changed: ['SVC_ADMIN_TOKEN_FILE'],
    });
    expect((await call(gateway, 'GET', '/admin/stats', ADMIN_TOKEN)).status).toBe(401);
  });

  test('that cannot be used make a reload change nothing, with all problems in one answer', async () => {
    await using replica = await startFakeReplica();
    const { gateway, write } = await startWithFiles(replica);
    await using _gateway = gateway;
    await write('read', '\n');
    gateway.writeConfig({ config: { timeouts: { idle: '7s' } } });
    const refused = await gateway.reload();
    expect(refused.status).toBe(422);
    const message = 'the file that SVC_READ_TOKEN_FILE names is empty';
    expect(await refused.json()).toMatchObject({ error: { code: 'invalid_config', message } });
    gateway.writeConfig('replicas: []\n');
    const { error } = (await (await gateway.reload()).json()) as { error: { message: string } };
    expect(error.message.split('\n')).toEqual([expect.stringMatching(/^line 1: replicas: /), message]);
    expect((await call(gateway, 'GET', '/metrics', READ_TOKEN)).status).toBe(200);

    await write('read', READ_TOKEN);
    gateway.writeConfig({ config: { timeouts: { idle: '7s' } } });
    expect(await (await gateway.reload()).json()).toMatchObject({ changed: ['timeouts.idle'] });
  });
});

/** A client that uses one connection as long as the server keeps it. */
class KeptConnection {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;
  readonly #sockets = new Set<unknown>();

  constructor(url: string) {
    this.#url = `${url}/admin/stats`;
  }

  /** How many connections it has used. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Returns the status. */
  async get(token: string): Promise<number | undefined> {
    const request = get(this.#url, { agent: this.#agent, headers: { Authorization: `Bearer ${token}` } });
    const [response] = await once(request, 'response');
    this.#sockets.add(request.socket);
    await response.resume().toArray();
    return response.statusCode;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
