import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { start } from '../cli/invoke.ts';
import { answerError, drainedNames, setUp, TOKEN, underLoad } from './scene.ts';

const SHADOW = ['--shadow', '100%', '--ramp', '0s', '--exec', 'true'];

describe('gateway rollout --shadow', () => {
  test('never lets a client meet an engine that is bad after its restart', async () => {
    const { gateway, replicas, begin } = await setUp(['a', 'b']);
    replicas.get('a')?.answer(answerError(500));
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });

    const outcome = await underLoad(gateway, begin(['a', ...SHADOW]));

    expect(outcome).toMatchObject({ exitCode: 3 });
    expect(outcome.stdout + outcome.stderr).toContain('in the shadow is worse than what clients get');
    expect(replicas.get('a')?.requests.length).toBeGreaterThan(0);
    expect(gateway.records.every(({ replica, status }) => replica === 'b' && status === 200)).toBe(true);
    expect(await drainedNames(gateway)).toEqual(['a']);
  });

  test('goes on when the replica is as good as those that serve', async () => {
    const { gateway, begin } = await setUp(['a', 'b']);

    const outcome = await underLoad(
      gateway,
      begin(['a', ...SHADOW, '--verdict', 'warn', '--compare-timeout', '3s']),
    );

    expect(outcome).toMatchObject({ exitCode: 0 });
    expect(outcome.stdout).toContain('in the shadow');
    expect(await drainedNames(gateway)).toEqual([]);
  });

  test('keeps its share where the rollout goes on by its id', async () => {
    const { gateway, roll, folder } = await setUp(['a', 'b']);
    const lenient = ['--verdict', 'warn', '--compare-timeout', '3s'];
    const failed = await roll('a', ...SHADOW.slice(0, -1), 'false', ...lenient);
    expect(failed).toMatchObject({ exitCode: 1 });
    const { rollouts } = (await (await gateway.admin('/admin/rollouts')).json()) as {
      rollouts: { id: string }[];
    };

    const elsewhere = ['--admin', gateway.adminUrl, '--state', join(folder, 'elsewhere.json')];
    const resume = ['rollout', '--resume', rollouts[0]?.id ?? '', ...elsewhere, '--exec', 'true'];
    const outcome = await underLoad(gateway, start(resume, TOKEN));

    expect(outcome).toMatchObject({ exitCode: 0 });
    expect(outcome.stdout).toContain('in the shadow');
  });

  test.for([
    [['--shadow', 'much'], "option '--shadow' needs per cent such as 5%"],
    [['--shadow', '0.0%'], "option '--shadow' needs per cent such as 5%"],
    [['--shadow', '5%', '--verdict', 'off'], "'--shadow' judges: it excludes '--verdict off'"],
  ] as const)('refuses %j', async ([args, message]) => {
    const { roll } = await setUp(['a', 'b']);

    const outcome = await roll('a', ...args);

    expect(outcome).toMatchObject({ exitCode: 2 });
    expect(outcome.stderr).toContain(message);
  });
});

describe('a rollout beside a shadow', () => {
  const JUDGED = ['--ramp', '0s', '--exec', 'true', '--verdict', 'warn', '--compare-timeout', '2s'];
  const post = { method: 'POST' };

  test('leaves it alone, and compares with those that serve', async () => {
    const { gateway, begin } = await setUp(['a', 'b', 's']);
    await gateway.admin('/admin/replicas/s/shadow?requests=100%25', post);

    const outcome = await underLoad(gateway, begin(['--all', ...JUDGED]));

    expect(outcome).toMatchObject({ exitCode: 0 });
    expect(outcome.stdout).toContain('left alone, because drained or a shadow: s');
    expect(outcome.stdout).toContain('2 of 2 replicas done');
    expect((await gateway.replicas())[2]).toMatchObject({ shadow: { requests: 1 }, drained: false });
  });

  test('goes on when a peer becomes one, or is removed by a reload, while it compares', async () => {
    const { gateway, replicas, begin } = await setUp(['a', 'b', 'c', 'd']);
    const rollout = begin(['a', ...JUDGED.slice(0, -1), '5s']);
    const outcome = underLoad(gateway, rollout);
    await rollout.untilWritten('a: is compared');

    await gateway.admin('/admin/replicas/b/shadow', post);
    gateway.writeConfig({ replicas: [...replicas.values()].filter(({ name }) => name !== 'd') });
    expect((await gateway.reload()).status).toBe(200);

    expect(await outcome).toMatchObject({ exitCode: 0 });
    expect((await outcome).stdout).toContain('1 of 1 replicas done');
  });
});
