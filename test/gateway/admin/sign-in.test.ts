import { expect, test } from 'vitest';
import type { AdminToken } from '#config/secrets';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const READ_TOKEN = 'test-read-token-0001';
const OPERATOR = { name: 'olga', role: 'operator' as const, token: 'test-operator-token' };

async function start(replica: FakeReplica) {
  return await startGateway({ replicas: [replica], readToken: READ_TOKEN, moreTokens: [OPERATOR] });
}

/** Makes a call. `secret`: undefined where there is none. */
async function call(gateway: StartedGateway, method: string, path: string, token: string) {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(gateway.adminUrl + path, { method, headers });
  const body = (await response.json()) as { code?: string; token?: string; error?: { code: string } };
  return { status: response.status, secret: body.code ?? body.token ?? '', error: body.error?.code };
}

const makeLink = async (gateway: StartedGateway, token: string) =>
  (await call(gateway, 'POST', '/admin/sign-in-links', token)).secret;
const open = (gateway: StartedGateway, code: string) => call(gateway, 'POST', '/admin/sign-in', code);

test('a link signs in once, and its session may do what the token may that made it', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await start(replica);
  for (const [token, mayDrain] of [
    [READ_TOKEN, false],
    [OPERATOR.token, true],
    [ADMIN_TOKEN, true],
  ] as const) {
    const code = await makeLink(gateway, token);
    const { status, secret: session } = await open(gateway, code);
    expect(status).toBe(200);
    expect(await open(gateway, code)).toMatchObject({ status: 401, error: 'unauthorized' });
    expect((await call(gateway, 'GET', '/admin/overview?after=0', session)).status).toBe(200);
    const drain = await call(gateway, 'POST', '/admin/replicas/a/drain', session);
    expect(drain.status === 200).toBe(mayDrain);
    expect((await call(gateway, 'POST', '/admin/reload', session)).error).toBe(
      { [READ_TOKEN]: 'read_only_token', [OPERATOR.token]: 'admin_token_required' }[token],
    );
  }
});

test('the code of a link is good for signing in alone, and only codes are', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await start(replica);
  const code = await makeLink(gateway, ADMIN_TOKEN);
  for (const [method, path] of [
    ['GET', '/admin/overview?after=0'],
    ['POST', '/admin/replicas/a/drain'],
    ['POST', '/admin/sign-in-links'],
    ['GET', '/no-such-path'],
  ] as const) {
    expect(await call(gateway, method, path, code), path).toMatchObject({
      status: 401,
      error: 'unauthorized',
    });
  }
  expect(await open(gateway, ADMIN_TOKEN)).toMatchObject({ status: 401 });
  expect((await open(gateway, code)).status).toBe(200);
});

test('a session makes no further links, so that it ends when it should', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await start(replica);
  const { secret: session } = await open(gateway, await makeLink(gateway, ADMIN_TOKEN));
  expect(await call(gateway, 'POST', '/admin/sign-in-links', session)).toMatchObject({
    status: 403,
    error: 'token_required',
  });
});

test('guessed codes are limited like guessed tokens', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await start(replica);
  const statuses = [];
  for (let guess = 0; guess < 40; guess += 1) statuses.push((await open(gateway, `guess-${guess}`)).status);
  expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401));
  expect(statuses.slice(10)).toContain(429);
});

test('neither codes nor tokens of sessions are in the log or in the metrics; who signed in is', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await start(replica);
  const code = await makeLink(gateway, OPERATOR.token);
  const { secret: session } = await open(gateway, code);
  await open(gateway, code);
  const log = gateway.logLines.join('\n');
  const metrics = await (await gateway.admin('/metrics')).text();
  for (const secret of [code, session]) expect(log + metrics).not.toContain(secret);
  expect(log).toMatch(/"token_name":"olga".*a link to sign in was made/);
  expect(log).toMatch(/"token_name":"olga".*signed in with a link/);
});

test('a session ends when a reload takes the token away that made its link', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  const admin: AdminToken = { name: 'admin', role: 'admin', token: ADMIN_TOKEN };
  let tokens: readonly AdminToken[] = [admin, OPERATOR];
  await using gateway = await startGateway({
    replicas: [replica],
    moreTokens: [OPERATOR],
    readSecrets: async () => ({ tokens }),
  });
  const { secret: session } = await open(gateway, await makeLink(gateway, OPERATOR.token));
  await gateway.reload();
  expect((await call(gateway, 'GET', '/admin/stats', session)).status).toBe(200);
  tokens = tokens.slice(0, 1);
  await gateway.reload();
  expect((await call(gateway, 'GET', '/admin/stats', session)).status).toBe(401);
});
