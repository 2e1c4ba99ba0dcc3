import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createRoutes } from '../../src/admin/route-table.ts';
import { readAdminTokens } from '../../src/config/admin-tokens.ts';
import { startFakeReplica } from '../support/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '../support/start-gateway.ts';

const READ_TOKEN = 'test-read-token-0001';

const call = (gateway: StartedGateway, method: string, path: string, token: string) =>
  fetch(gateway.adminUrl + path, { method, headers: { Authorization: `Bearer ${token}` } });

const codeOf = async (response: Response) =>
  ((await response.json()) as { readonly error: { readonly code: string } }).error.code;

/** The paths of the API that have this method, each with a name in it that exists. */
const pathsOf = (method: 'GET' | 'POST') =>
  createRoutes()
    .filter((route) => route.method === method && !route.isPage)
    .map(({ path }) => path.replace('{name}', 'a'));

describe('a read-only token', () => {
  test('reads everything and changes nothing', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica], readToken: READ_TOKEN });
    for (const path of pathsOf('GET')) {
      for (const method of ['GET', 'HEAD']) {
        const response = await call(gateway, method, path, READ_TOKEN);
        await response.arrayBuffer();
        expect(response.status, `${method} ${path}`).toBe(200);
      }
    }
    for (const path of pathsOf('POST')) {
      const response = await call(gateway, 'POST', path, READ_TOKEN);
      expect(response.status, path).toBe(403);
      expect(await codeOf(response), path).toBe('read_only_token');
    }
    expect(await gateway.replicas()).toMatchObject([{ drained: false }]);
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

describe('tokens from files', () => {
  /** A gateway whose tokens are in two files, with a way to change them. */
  async function startWithFiles(replica: { readonly name: string; readonly url: string }) {
    const files = { admin: '', read: '' };
    const write = async (which: keyof typeof files, text: string) => writeFile(files[which], text);
    const gateway = await startGateway({
      replicas: [replica],
      readToken: READ_TOKEN,
      readTokens: async () => {
        const env = { SVC_ADMIN_TOKEN_FILE: files.admin, SVC_READ_TOKEN_FILE: files.read };
        return (await readAdminTokens(env)).tokens;
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
