import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { hang, refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { type ReplicaAnswer, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

interface DrainAnswer {
  readonly replica: ReplicaAnswer;
  readonly was_drained: boolean;
  readonly stored: boolean;
  readonly warning?: string;
}

const POST = { method: 'POST' };

async function call(gateway: StartedGateway, target: string, init: RequestInit = {}): Promise<DrainAnswer> {
  const response = await gateway.admin(`/admin/replicas/${target}`, { ...POST, ...init });
  expect(response.status).toBe(200);
  return (await response.json()) as DrainAnswer;
}

/** A chat that nobody reads the end of: its request is in flight until the gateway closes or the replica answers. */
function chatOn(gateway: StartedGateway, signal = new AbortController().signal): void {
  gateway.chat({}, { signal }).then(
    (response) => response.text().catch(() => undefined),
    () => undefined,
  );
}

const untilDrained = (gateway: StartedGateway, drained = true) =>
  expect.poll(() => gateway.replicas(), { interval: 5 }).toMatchObject([{ drained }]);

describe('?wait', () => {
  test('answers when the last request in flight has ended', async () => {
    const gate = createGate();
    await using replica = await startFakeReplica({ name: 'a', script: gate.script });
    await using gateway = await startGateway({ replicas: [replica] });
    chatOn(gateway);
    await replica.untilRequests(1);

    const waiting = call(gateway, 'a/drain?wait=1h');
    await untilDrained(gateway);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 1, safe_to_stop: false }]);
    gate.open();

    expect(await waiting).toMatchObject({
      was_drained: false,
      replica: { drained: true, inflight: 0, safe_to_stop: true },
    });
  });

  test('answers at once when nothing is in flight', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });

    expect(await call(gateway, 'a/drain?wait=1h')).toMatchObject({ replica: { safe_to_stop: true } });
  });

  test('answers 200 at the time-out, and tells that it is not safe', async () => {
    await using replica = await startFakeReplica({ name: 'a', script: hang });
    await using gateway = await startGateway({ replicas: [replica], config: { shutdown: { grace: '0s' } } });
    chatOn(gateway);
    await replica.untilRequests(1);

    const answer = await call(gateway, 'a/drain?wait=20ms');

    expect(answer).toMatchObject({ replica: { drained: true, inflight: 1, safe_to_stop: false } });
  });

  test('is over with an undrain', async () => {
    await using replica = await startFakeReplica({ name: 'a', script: hang });
    await using gateway = await startGateway({ replicas: [replica], config: { shutdown: { grace: '0s' } } });
    chatOn(gateway);
    await replica.untilRequests(1);

    const waiting = call(gateway, 'a/drain?wait=1h');
    await untilDrained(gateway);
    await call(gateway, 'a/undrain');

    expect(await waiting).toMatchObject({
      replica: { drained: false, safe_to_stop: false },
      overtaken: true,
      warning: 'A later undrain, perhaps on another gateway, has replaced it.',
    });
  });

  test('keeps the drain when whoever waits leaves, and holds no shutdown', async () => {
    await using replica = await startFakeReplica({ name: 'a', script: hang });
    await using gateway = await startGateway({ replicas: [replica], config: { shutdown: { grace: '0s' } } });
    chatOn(gateway);
    await replica.untilRequests(1);
    const leave = new AbortController();
    const left = gateway.admin('/admin/replicas/a/drain?wait=1h', { ...POST, signal: leave.signal });
    const stays = gateway.admin('/admin/replicas/a/drain?wait=1h', POST);
    await untilDrained(gateway);

    leave.abort();
    await expect(left).rejects.toThrow();
    expect(await gateway.replicas()).toMatchObject([{ drained: true }]);
    const [answer] = await Promise.allSettled([stays, gateway.close()]);
    // Who waits hears how it is now, if the answer goes out before the connection is closed.
    if (answer.status === 'fulfilled')
      expect(await answer.value.json()).toMatchObject({ replica: { drained: true } });
  });

  test.for(['wait=', 'wait=30', 'wait=-1s', 'wait=61m', 'wait=1h30m', 'wait=ever', 'wait=1s&wait=2s'])(
    'with ?%s is refused, and drains nothing',
    async (query) => {
      await using replica = await startFakeReplica({ name: 'a' });
      await using gateway = await startGateway({ replicas: [replica] });

      const response = await gateway.admin(`/admin/replicas/a/drain?${query}`, POST);

      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({
        error: {
          message: expect.stringMatching(/^wait: /),
          type: 'invalid_request_error',
          param: 'wait',
          code: 'invalid_request',
        },
      });
      expect(await gateway.replicas()).toMatchObject([{ drained: false }]);
    },
  );
});

describe('?reason', () => {
  const withReason = (action: string, reason: string) => `a/${action}?${new URLSearchParams({ reason })}`;

  test('is shown with the replica and in the log, and kept over a restart', async () => {
    const directory = await temporaryFolder();
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica], stateDir: directory });

    const answer = await call(gateway, withReason('drain', 'new weights, ticket 12'));

    expect(answer.replica.reason).toBe('new weights, ticket 12');
    expect(gateway.logLines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ action: 'drain', reason: 'new weights, ticket 12' }),
    );
    await gateway.close();
    await using second = await startGateway({ replicas: [replica], stateDir: directory });
    expect(await second.replicas()).toEqual([answer.replica]);
  });

  test('stays until another one is given or the state changes', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    const reasons: unknown[] = [];
    for (const target of [
      'a/drain',
      withReason('drain', 'first'),
      'a/drain',
      withReason('drain', ' '),
      withReason('drain', 'second'),
      'a/undrain',
      withReason('undrain', 'back again'),
    ]) {
      reasons.push((await call(gateway, target)).replica.reason);
    }
    expect(reasons).toEqual([null, 'first', 'first', 'first', 'second', null, 'back again']);
  });

  test('is one line of at most 256 characters', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });

    const cleaned = await call(gateway, withReason('drain', '\u001b[2J two\r\nlines\u0000\t '));
    expect(cleaned.replica.reason).toBe('[2J two lines');
    const cut = await call(gateway, withReason('drain', '🙂'.repeat(300)));
    expect(cut.replica.reason).toBe('🙂'.repeat(256));
  });
});

describe('a warning', () => {
  test('names the models that are left without a replica, and goes with the next one', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: a.url, models: ['m', 'only-a'] },
        { name: 'b', url: b.url, models: ['m'] },
      ],
    });

    expect((await call(gateway, 'a/drain')).warning).toMatch(/No replica is left for only-a:/);
    expect((await call(gateway, 'b/drain')).warning).toMatch(/No replica is left for m:/);
    expect((await call(gateway, 'a/drain')).warning).toMatch(/No replica is left for m, only-a:/);
    expect((await call(gateway, 'b/undrain')).warning).toBeUndefined();
    expect((await call(gateway, 'a/drain')).warning).toMatch(/No replica is left for only-a:/);
  });

  test('does not name all of many models', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    const models = Array.from({ length: 9 }, (_, index) => `m${index}`);
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: a.url, models }] });

    expect((await call(gateway, 'a/drain')).warning).toMatch(/left for m0, m1, m2, m3, m4, 4 more:/);
  });

  test('is not given while a replica that serves any model takes requests', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using any = await startFakeReplica({ name: 'any' });
    await using gateway = await startGateway({ replicas: [a, { name: 'any', url: any.url, models: ['*'] }] });

    expect((await call(gateway, 'a/drain')).warning).toBeUndefined();
    expect((await call(gateway, 'any/drain')).warning).toMatch(
      /left for m, any model that no replica is known to serve:/,
    );
  });

  test('says that the replicas left have no room for what is in flight, as long as they have none', async () => {
    await using a = await startFakeReplica({ name: 'a', script: hang });
    await using b = await startFakeReplica({ name: 'b', script: hang });
    await using gateway = await startGateway({
      replicas: [a, { name: 'b', url: b.url, models: ['m'], max_inflight: 2 }],
      config: { shutdown: { grace: '0s' } },
    });
    for (let count = 0; count < 3; count++) chatOn(gateway);
    await Promise.all([a.untilRequests(2), b.untilRequests(1)]);

    expect((await call(gateway, 'a/drain')).warning).toBe(
      'On the replicas left for m there is room (max_inflight) for 1 of the 2 in flight: requests may have to wait.',
    );
    expect((await call(gateway, 'a/drain')).warning).toBeUndefined();
    await call(gateway, 'a/undrain?ramp=0s');
    // It has no limit.
    expect((await call(gateway, 'b/drain')).warning).toBeUndefined();
  });
});

test('a replica that is down is drained like any other', async () => {
  await using up = await startFakeReplica({ name: 'up' });
  await using gateway = await startGateway({
    replicas: [up, { name: 'down', url: refusedUrlBeside(up), models: ['m'] }],
  });

  const answer = await call(gateway, 'down/drain?wait=1h');

  expect(answer).toMatchObject({ replica: { drained: true, inflight: 0, safe_to_stop: true } });
  for (let i = 0; i < 4; i++) expect((await gateway.chat()).status).toBe(200);
  const records = await gateway.waitForRecords(4);
  expect(records.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1]);
});

test('a drain that cannot be stored is in force, and says that a restart forgets it', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await startGateway({ replicas: [replica] });
  expect((await call(gateway, 'a/undrain')).stored).toBe(true);
  await mkdir(join(gateway.stateDir, 'drains.json.tmp'));

  expect(await call(gateway, 'a/drain')).toMatchObject({
    stored: false,
    replica: { drained: true },
    warning: expect.stringContaining('could not be stored'),
  });
  await rm(join(gateway.stateDir, 'drains.json.tmp'), { recursive: true });
  expect((await call(gateway, 'a/drain')).stored).toBe(true);
});
