import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chatChunk, DONE, startFakeReplica } from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { stateAfterKill } from '#testkit/processes/state-after-kill.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
const POST = { method: 'POST' };

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
