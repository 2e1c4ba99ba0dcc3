import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startAdminProxy } from '#testkit/servers/admin-proxy.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { checkSameGateways } from '../../src/rollout/gateways/gateway-identity.ts';
import { invoke } from '../cli/invoke.ts';
import { drainedNames, QUICK, setUp, TOKEN } from './scene.ts';

test('--resume refuses another gateway with replicas of the same names, and touches nothing there', async () => {
  const { gateway, roll, folder, statePath, replicas } = await setUp(['a', 'b']);
  const restarts = join(folder, 'restarts');
  const exec = `echo {name} >>${restarts}; test -e ${join(folder, 'repaired')}`;
  expect(await roll('a', 'b', ...QUICK, '--exec', exec)).toMatchObject({ exitCode: 1 });
  await using other = await startGateway({ replicas: [...replicas.values()] });
  const configPath = join(folder, 'other.yaml');
  const { host } = new URL(other.adminUrl);
  await writeFile(
    configPath,
    `gateway: { admin_listen: "${host}" }\nreplicas: [{ name: a, url: "http://127.0.0.1:1" }]\n`,
  );

  const state = await readFile(statePath, 'utf8');
  for (const named of [
    ['--admin', other.adminUrl],
    ['-c', configPath],
    ['--admin', gateway.adminUrl, '--admin', other.adminUrl],
  ]) {
    const { exitCode, stderr } = await roll('--resume', ...named);
    expect(stderr).toMatch(
      new RegExp(
        `^gateway: ${other.adminUrl} \\(instance [0-9a-f-]{36}\\) is not the gateway of this rollout, which is ${gateway.adminUrl} \\(instance [0-9a-f-]{36}\\)`,
      ),
    );
    expect(exitCode).toBe(1);
  }
  expect(await drainedNames(other)).toEqual([]);
  expect(await readFile(restarts, 'utf8')).toBe('a\n');
  expect(await readFile(statePath, 'utf8')).toBe(state);

  // The configuration of the environment is not that of the rollout.
  await writeFile(join(folder, 'repaired'), '');
  const env = { ...TOKEN, SVC_CONFIG: configPath };
  expect(await invoke(['rollout', '--resume', '--state', statePath], env)).toMatchObject({ exitCode: 0 });
  expect(await readFile(restarts, 'utf8')).toBe('a\na\nb\n');
});

test('--resume goes on with the same gateway at another address', async () => {
  const { gateway, roll } = await setUp(['a', 'b']);
  expect(await roll('a', ...QUICK, '--exec', 'false')).toMatchObject({ exitCode: 1 });
  await using proxy = await startAdminProxy(gateway.adminUrl, async () => undefined);
  // `false` is stored, and fails again: but it is run.
  expect((await roll('--resume', '--admin', proxy.url)).stdout).toContain('its command ended with 1');
});

test('--resume needs all gateways that share nothing', async () => {
  const { gateway, roll, replicas } = await setUp(['a', 'b']);
  await using second = await startGateway({ replicas: [...replicas.values()] });
  const both = ['--admin', second.adminUrl];
  expect(await roll('a', ...both, ...QUICK, '--exec', 'false')).toMatchObject({ exitCode: 1 });
  const { exitCode, stderr } = await roll('--resume', '--admin', gateway.adminUrl);
  expect(stderr).toContain(`this rollout also has the gateway ${second.adminUrl} (instance `);
  expect(exitCode).toBe(1);
});

test('of a fleet, a gateway that knows a process of it stands for all of them', () => {
  const a = { address: 'http://a', instanceId: '1', fleet: ['p', 'q'] };
  const b = { address: 'http://b', instanceId: '2', fleet: ['q', 'r'] };
  expect(() => checkSameGateways([a], [b])).not.toThrow();
  expect(() => checkSameGateways([a, b], [b])).not.toThrow();
  expect(() => checkSameGateways([a], [{ ...b, fleet: ['r'] }])).toThrow('http://b (instance 2) is not');
  expect(() => checkSameGateways([a], [{ ...b, fleet: [] }])).toThrow('is not the gateway of this rollout');
});
