import { access, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { EventLog } from '#testkit/event-log.ts';
import { startAdminProxy } from '#testkit/servers/admin-proxy.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { invoke, start } from '../cli/invoke.ts';
import { drainedNames, QUICK, setUp, TOKEN } from './scene.ts';

describe('while a rollout is under way', () => {
  /** Begins a rollout of `a` whose command runs until it may end. */
  async function setUpUnderWay() {
    const scene = await setUp(['a', 'b', 'c']);
    const isOpen = join(scene.folder, 'open');
    const rollout = scene.begin([
      'a',
      ...QUICK,
      '--exec',
      `echo started; until test -e ${isOpen}; do sleep 0.05; done`,
    ]);
    await rollout.untilWritten('a | started');
    const finish = async () => {
      await writeFile(isOpen, '');
      return await rollout.ended;
    };
    return { ...scene, finish };
  }

  test('no other one may use its state file, and it is told which process does', async () => {
    const { gateway, roll, finish } = await setUpUnderWay();
    for (const args of [['b', ...QUICK, '--exec', 'true'], ['--resume'], ['b', '--new', '--exec', 'true']]) {
      const { exitCode, stderr } = await roll(...args);
      expect(stderr).toMatch(/another rollout is under way \(pid \d+ on host .+\); it uses .*rollout\.json/);
      expect(exitCode).toBe(1);
    }
    expect(await drainedNames(gateway)).toEqual(['a']);
    expect(await finish()).toMatchObject({ exitCode: 0 });
    expect(await roll('b', ...QUICK, '--exec', 'true')).toMatchObject({ exitCode: 0 });
  });

  test('another one with another state file, as on another machine, does not begin', async () => {
    const { gateway, folder, finish } = await setUpUnderWay();
    const elsewhere = join(folder, 'elsewhere.json');
    const args = ['rollout', 'b', ...QUICK, '--exec', 'true', '--admin', gateway.adminUrl];
    const { exitCode, stdout } = await invoke([...args, '--state', elsewhere], TOKEN);
    expect(stdout).not.toContain('b: is drained\n');
    expect(stdout).toContain('b: another rollout has drained a\n');
    expect(stdout).toMatch(/nothing was done\n$/);
    expect(exitCode).toBe(1);
    expect(await drainedNames(gateway)).toEqual(['a']);
    await expect(access(elsewhere)).rejects.toThrow('ENOENT');
    expect(await finish()).toMatchObject({ exitCode: 0 });
  });

  test('one that looked just before the other drained takes its own drain back', async () => {
    const { gateway, folder, begin } = await setUp(['a', 'b', 'c']);
    const firstMayDrain = Promise.withResolvers<void>();
    const calls = new EventLog<string>();
    await using proxy = await startAdminProxy(gateway.adminUrl, async (call) => {
      calls.push(call);
      if (call.includes('/b/drain')) await firstMayDrain.promise;
    });
    const args = ['rollout', 'b', ...QUICK, '--exec', 'true', '--admin', proxy.url];
    const late = start([...args, '--state', join(folder, 'late.json')], TOKEN);
    await calls.until(() => calls.items.some((call) => call.includes('/b/drain')));
    const isOpen = join(folder, 'open');
    const early = begin([
      'a',
      ...QUICK,
      '--exec',
      `echo started; until test -e ${isOpen}; do sleep 0.05; done`,
    ]);
    await early.untilWritten('a | started');
    firstMayDrain.resolve();
    expect(await late.ended).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('b: another rollout has drained a'),
    });
    expect(await drainedNames(gateway)).toEqual(['a']);
    await writeFile(isOpen, '');
    expect(await early.ended).toMatchObject({ exitCode: 0 });
  });
});

test('a rollout that is given up with --new is no reason to stop, and what it has drained is named', async () => {
  const { gateway, roll } = await setUp(['a', 'b', 'c']);
  expect(await roll('a', ...QUICK, '--exec', 'false')).toMatchObject({ exitCode: 1 });
  const { exitCode, stdout } = await roll('--all', '--new', ...QUICK, '--exec', 'true');
  expect(stdout).toContain('still drained by the rollout that is given up: a\n');
  expect(stdout).toMatch(/2 of 2 replicas done\n$/);
  expect(exitCode).toBe(0);
  expect(await drainedNames(gateway)).toEqual(['a']);
});

describe('a drain whose outcome is not known', () => {
  test('is told of after Ctrl-C, and the rollout can be resumed', async () => {
    const { gateway, statePath } = await setUp(['a', 'b']);
    await using proxy = await startAdminProxy(gateway.adminUrl, async () => undefined);
    const reached = proxy.hold('after', (call) => call.includes('/a/drain'));
    const args = ['rollout', 'a', ...QUICK, '--exec', 'true', '--admin', proxy.url, '--state', statePath];
    const rollout = start(args, TOKEN);
    await reached;
    rollout.interrupt();
    const { exitCode, stdout } = await rollout.ended;
    expect(stdout).toContain('it may be drained');
    expect(stdout).toContain('To go on: gateway rollout --resume');
    expect(exitCode).toBe(130);
    expect(await drainedNames(gateway)).toEqual(['a']);
    expect(await invoke(['rollout', '--resume', '--state', statePath], TOKEN)).toMatchObject({ exitCode: 0 });
    expect(await drainedNames(gateway)).toEqual([]);
  });

  test('does not come from a second gateway that refuses: the first one takes its drain back', async () => {
    const { gateway, replicas, statePath } = await setUp(['a', 'b']);
    const only = replicas.get('a');
    if (only === undefined) throw new Error('no replica a');
    await using second = await startGateway({ replicas: [only] });
    const admins = ['--admin', gateway.adminUrl, '--admin', second.adminUrl];
    const args = ['rollout', 'a', ...QUICK, '--exec', 'true', ...admins, '--state', statePath];
    const { exitCode, stdout } = await invoke(args, TOKEN);
    expect(stdout).toContain('no other replica answers for m');
    expect(stdout).toMatch(/nothing was done\n$/);
    expect(exitCode).toBe(1);
    expect(await drainedNames(gateway)).toEqual([]);
    expect(await drainedNames(second)).toEqual([]);
  });
});

test('a replica that somebody drained after the rollout undrained it stays drained', async () => {
  const { gateway, begin, roll } = await setUp(['a', 'b']);
  const rollout = begin(['a', '--ramp', '10m', '--exec', 'true']);
  await rollout.untilWritten('a: serves');
  rollout.interrupt();
  expect(await rollout.ended).toMatchObject({ exitCode: 130 });
  await gateway.admin('/admin/replicas/a/drain?reason=no+trust', { method: 'POST' });
  const { exitCode, stdout } = await roll('--resume');
  expect(stdout).toContain('a: was drained by somebody else');
  expect(exitCode).toBe(1);
  expect(await drainedNames(gateway)).toEqual(['a']);
});

test('a command that takes too long is ended with all that it has started', async () => {
  const { roll, folder } = await setUp(['a', 'b']);
  const pidFile = join(folder, 'pid');
  const exec = `sleep 600 & echo $! >${pidFile}; wait; true`;
  const { exitCode, stdout } = await roll('a', ...QUICK, '--exec', exec, '--restart-timeout', '1s');
  expect(stdout).toContain('a: is drained; its command takes too long');
  expect(exitCode).toBe(1);
  const pid = Number(await readFile(pidFile, 'utf8'));
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});
