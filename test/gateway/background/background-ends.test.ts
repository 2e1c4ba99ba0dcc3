import { hash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import type { Overview } from '#testkit/dashboard/made-overview.ts';
import { createResponseStore } from '#testkit/engines/response-store.ts';
import { answerJson, type ReplicaExchange, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';
import { start } from '../../cli/invoke.ts';
import { begin, drain, look, RUNNING, SAFE, startBackground, UNKNOWN, until } from './start-background.ts';

const RESPONSES = '/v1/responses';

describe('a response in the background', () => {
  test.each(['failed', 'incomplete', 'cancelled'] as const)('is over when it is %s', async (status) => {
    const { gateway, store } = await startBackground();
    store.set(await begin(gateway), status);
    const record = await gateway.nextRecord();
    const reason = status === 'incomplete' ? 'max_output_tokens' : status;
    expect(record).toMatchObject({ finish_reasons: [reason], background_end: 'ended', status: 200 });
    expect(record.error_type).toBe(status === 'failed' ? 'upstream_error' : undefined);
  });

  test('is over when its client cancels it, and when it is deleted', async () => {
    const { gateway, store } = await startBackground();
    const [cancelled, deleted] = [await begin(gateway), await begin(gateway)];
    await drain(gateway);
    expect(await look(gateway)).toEqual({ ...RUNNING, background: 2 });
    // The replica is drained: calls about what it has go to it only while it is not.
    await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });
    expect((await fetch(`${gateway.url}${RESPONSES}/${cancelled}/cancel`, { method: 'POST' })).status).toBe(
      200,
    );
    expect((await fetch(`${gateway.url}${RESPONSES}/${deleted}`, { method: 'DELETE' })).status).toBe(200);
    await drain(gateway);
    await until(gateway, SAFE);
    const records = await gateway.waitForRecords(2);
    const endOf = (id: string) => records.find(({ response_id }) => response_id === id);
    expect(endOf(cancelled)).toMatchObject({ finish_reasons: ['cancelled'], background_end: 'ended' });
    expect(endOf(deleted)).toMatchObject({ background_end: 'lost' });
    expect(store.pollsOf(deleted)).toBeGreaterThanOrEqual(3);
    await gateway.untilLogged('it restarted, or they were deleted');
  });

  test('is not known while the replica does not answer, and over when it has restarted without it', async () => {
    const { gateway, store } = await startBackground();
    await begin(gateway);
    await drain(gateway);
    store.answerPolls((exchange) => exchange.reset());
    await until(gateway, UNKNOWN);
    store.answerPolls(null);
    await until(gateway, RUNNING);
    store.forget();
    await until(gateway, SAFE);
    expect(await gateway.nextRecord()).toMatchObject({ background_end: 'lost' });
  });

  const tooLong: Script = async (exchange: ReplicaExchange) => {
    await exchange.head(200, ['Content-Type', 'application/json']);
    const piece = Buffer.alloc(1024 * 1024, 0x5b);
    for (let count = 0; count < 65 && !exchange.request.isAborted; count++) {
      await exchange.write(piece);
      await new Promise(setImmediate);
    }
  };

  test.each<[string, Script]>([
    ['an error', answerJson({ error: 'status: completed' }, { status: 500 })],
    ['a refusal', answerJson({ error: 'no' }, { status: 401 })],
    ['another response', answerJson({ id: 'resp_other', status: 'completed' })],
    ['no status', answerJson({ id: 'resp_a1' })],
    ['a status that is none', answerJson({ id: 'resp_a1', status: { completed: true } })],
    [
      'what is no JSON',
      async (exchange) => {
        await exchange.head(200, ['Content-Type', 'application/json']);
        exchange.end('{"id":"resp_a1","status":"completed"');
      },
    ],
    ['a body without an end', tooLong],
  ])('is not known if the replica answers with %s', async (_, script) => {
    const { gateway, store } = await startBackground();
    const id = await begin(gateway);
    await drain(gateway);
    store.answerPolls(script);
    await until(gateway, UNKNOWN);
    store.answerPolls(null);
    store.set(id, 'completed');
    await until(gateway, SAFE);
  });

  test('is over for the drain when it is older than limits.background', async () => {
    const { gateway } = await startBackground({ limits: { background: '1s' } });
    await begin(gateway);
    await drain(gateway);
    expect(await look(gateway)).toEqual(RUNNING);
    await until(gateway, SAFE);
    const { background_ms = 0, background_end } = await gateway.nextRecord();
    expect(background_end).toBe('over_limit');
    expect(background_ms).toBeGreaterThanOrEqual(1_000);
    await gateway.untilLogged('older than limits.background');
  });

  test('is asked for with the key of the replica, and by nobody else', async () => {
    const { gateway, replica, store } = await startBackground({}, { api_key: 'key-of-a' });
    const id = await begin(gateway);
    await expect.poll(() => store.pollsOf(id)).toBeGreaterThan(0);
    const asked = replica.probes.filter(({ url }) => url === `${RESPONSES}/${id}`);
    expect(asked[0]?.header('authorization')).toEqual(['Bearer key-of-a']);
    expect(asked[0]?.method).toBe('GET');
  });

  test('is asked for over TLS with the certificate of the replica, and waits when the certificate is wrong', async () => {
    await using authority = await createAuthority();
    const [server, own] = await Promise.all([authority.issue('replica'), authority.issue('gateway')]);
    await using strangers = await createAuthority();
    const store = createResponseStore();
    const tls = { ...server, requestCert: true, rejectUnauthorized: true, ca: authority.ca.cert };
    await using replica = await startFakeReplica({ name: 'a', script: store.script, tls });
    replica.answerProbes(store.probeScript);
    const toTls = (ca: string) => ({ ca, cert: own.certPath, key: own.keyPath });
    const configOf = (ca: string) => ({ replicas: [{ name: 'a', url: replica.url, tls: toTls(ca) }] });
    await using gateway = await startGateway({
      ...configOf(authority.ca.certPath),
      config: { endpoints: ['responses'] },
    });
    const id = await begin(gateway);
    await drain(gateway);
    expect(await look(gateway)).toEqual(RUNNING);
    await expect.poll(() => store.pollsOf(id)).toBeGreaterThan(0);
    // From now on the gateway does not trust the replica.
    gateway.writeConfig(configOf(strangers.ca.certPath));
    expect((await gateway.reload()).status).toBe(200);
    await until(gateway, UNKNOWN);
    store.set(id, 'completed');
    gateway.writeConfig(configOf(authority.ca.certPath));
    expect((await gateway.reload()).status).toBe(200);
    await until(gateway, SAFE);
    expect(await gateway.nextRecord()).toMatchObject({ response_id: id, background_end: 'ended' });
  });

  test('stays with a replica that is removed, until it has ended', async () => {
    const { gateway, replica, store } = await startBackground({}, {});
    const id = await begin(gateway);
    gateway.writeConfig({ replicas: [{ name: 'b', url: replica.url }] });
    expect((await gateway.reload()).status).toBe(200);
    const removed = async () => (await gateway.replicas()).find(({ name }) => name === 'a');
    expect(await removed()).toMatchObject({ removing: true, background: 1, safe_to_stop: false });
    store.set(id, 'completed');
    expect(await gateway.nextRecord()).toMatchObject({ completion_tokens: 6000, background_end: 'ended' });
    await expect.poll(removed).toBeUndefined();
  });

  test('charges its client for its tokens when it has ended', async () => {
    const clients = [{ name: 'c', tenant: 't', key_sha256: hash('sha256', 'k'), tokens_per_minute: 10_000 }];
    const { gateway, store } = await startBackground({ clients });
    const headers = { Authorization: 'Bearer k' };
    const id = await begin(gateway, {}, { headers });
    const beganMs = performance.now();
    store.set(id, 'completed');
    await gateway.nextRecord();
    const response = await gateway.post(RESPONSES, { model: 'm', input: 'Hi' }, { headers });
    const returned = ((performance.now() - beganMs) / 60_000) * 10_000;
    const remaining = Number(response.headers.get('x-ratelimit-remaining-tokens'));
    expect(remaining).toBeLessThan(10_000 - 6_000 + returned);
  });

  test('is waited for by gateway drain --wait', async () => {
    const { gateway, store } = await startBackground();
    const id = await begin(gateway);
    const env = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };
    const args = ['drain', 'a', '--wait', '--force', '--admin', gateway.adminUrl];
    const draining = start(args, env);
    await draining.untilWritten('1 in the background');
    store.set(id, 'completed');
    const { exitCode, stdout } = await draining.ended;
    expect(stdout).toMatch(/^a is drained: 1 in the background\n(?:a: .*\n)*a is safe to stop\n$/);
    expect(exitCode).toBe(0);
    expect(await look(gateway)).toEqual(SAFE);
  });

  test('is known to a gateway that restarts in the middle, which makes its one record', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
    onTestFinished(() => rm(stateDir, { recursive: true }));
    const first = await startBackground({ gateway: { workers: 2 } }, { gpu_count: 2 }, { stateDir });
    const id = await begin(first.gateway, { input: 'a secret prompt' });
    await drain(first.gateway);
    await first.gateway.close();
    expect(first.gateway.records).toEqual([]);
    const stored = await readFile(join(stateDir, 'background.json'), 'utf8');
    expect(stored).toContain(id);
    expect(stored).not.toContain('secret');
    const second = await startBackground({}, { gpu_count: 2, url: first.replica.url }, { stateDir });
    await until(second.gateway, RUNNING);
    first.store.set(id, 'completed');
    await until(second.gateway, SAFE);
    const record = await second.gateway.nextRecord();
    expect(record).toMatchObject({ response_id: id, completion_tokens: 6000, background_end: 'ended' });
    expect(record.gpu_seconds).toBeGreaterThan(0);
    await second.gateway.close();
    const left = JSON.parse(await readFile(join(stateDir, 'background.json'), 'utf8')) as object;
    expect(left).toMatchObject({ responses: [], unfollowed: [] });
  });

  test('adds nothing to the costs of the last minute if its own are in the currency before a restart', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
    onTestFinished(() => rm(stateDir, { recursive: true }));
    const priced = { gpu_count: 2, gpu_hour_price: 3_600 };
    const first = await startBackground({ currency: 'EUR' }, priced, { stateDir });
    const id = await begin(first.gateway);
    await first.gateway.close();
    const keys = { ...priced, url: first.replica.url };
    const { gateway } = await startBackground({ currency: 'USD' }, keys, { stateDir });
    first.store.set(id, 'completed');
    expect(await gateway.nextRecord()).toMatchObject({ response_id: id, currency: 'EUR' });
    const lastMinute = async (): Promise<Overview['last_minute']> =>
      ((await (await gateway.admin('/admin/overview')).json()) as Overview).last_minute;
    expect(await lastMinute()).toMatchObject({ requests: 1, cost: null, currency: null });
    first.store.set(await begin(gateway), 'completed');
    const { cost = 0, currency } = await gateway.nextRecord();
    expect(currency).toBe('USD');
    const shown = await lastMinute();
    expect(shown).toMatchObject({ requests: 2, currency: 'USD' });
    expect(shown.cost).toBeCloseTo(cost, 9);
  });
});
