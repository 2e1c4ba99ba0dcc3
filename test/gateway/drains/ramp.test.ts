import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const POST = { method: 'POST' };

test('an undrain with a ramp is shown, lets few requests through at first, and ends with a drain', async () => {
  await using a = await startFakeReplica({ name: 'a' });
  await using b = await startFakeReplica({ name: 'b' });
  await using gateway = await startGateway({ replicas: [a, b] });
  await gateway.admin('/admin/replicas/a/drain', POST);
  const response = await gateway.admin('/admin/replicas/a/undrain?ramp=24h', POST);
  expect(await response.json()).toMatchObject({
    replica: { name: 'a', drained: false, ramp: { share: 0.05, duration_ms: 86_400_000 } },
  });
  for (let request = 0; request < 42; request++) await (await gateway.chat()).text();
  const served = (await gateway.waitForRecords(42)).map(({ replica }) => replica);
  expect(served.filter((replica) => replica === 'a').length).toBe(2);
  expect(await gateway.untilLogged('"msg":"undrain"')).toContain('"ramp_ms":86400000');

  await gateway.admin('/admin/replicas/a/drain', POST);
  await gateway.admin('/admin/replicas/a/undrain', POST);
  expect(await gateway.replicas()).toMatchObject([{ ramp: null }, { ramp: null }]);
});

test('rollout.ramp is the ramp of an undrain that names none, also after a reload', async () => {
  await using a = await startFakeReplica({ name: 'a' });
  await using gateway = await startGateway({ replicas: [a], config: { rollout: { ramp: '1h' } } });
  const undrain = async (query = '') => {
    await gateway.admin('/admin/replicas/a/drain', POST);
    const response = await gateway.admin(`/admin/replicas/a/undrain${query}`, POST);
    return await response.json();
  };
  expect(await undrain()).toMatchObject({ replica: { ramp: { duration_ms: 3_600_000 } } });
  expect(await undrain('?ramp=0s')).toMatchObject({ replica: { ramp: null } });
  gateway.writeConfig({ config: { rollout: { ramp: '2h' } } });
  expect((await gateway.reload()).status).toBe(200);
  expect(await undrain()).toMatchObject({ replica: { ramp: { duration_ms: 7_200_000 } } });
});

test('a ramp goes on after a restart of the gateway', async () => {
  await using a = await startFakeReplica({ name: 'a' });
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-ramp-'));
  const stateDir = folder.path;
  await using first = await startGateway({ replicas: [a], stateDir });
  await first.admin('/admin/replicas/a/drain', POST);
  await first.admin('/admin/replicas/a/undrain?ramp=1h', POST);
  await first.close();
  await using second = await startGateway({ replicas: [a], stateDir });
  expect(await second.replicas()).toMatchObject([{ drained: false, ramp: { duration_ms: 3_600_000 } }]);
});

test('a ramp that is no duration, or longer than a day, is refused', async () => {
  await using a = await startFakeReplica({ name: 'a' });
  await using gateway = await startGateway({ replicas: [a] });
  for (const ramp of ['', 'soon', '25h', '-1s']) {
    const response = await gateway.admin(`/admin/replicas/a/undrain?ramp=${ramp}`, POST);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param: 'ramp' } });
  }
});
