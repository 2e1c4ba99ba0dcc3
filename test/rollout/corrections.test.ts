import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { StartedGateway } from '#testkit/start-gateway.ts';
import { answerError, asEngine, drainedNames, QUICK, setUp, underLoad } from './scene.ts';

const reasonOf = async (gateway: StartedGateway, name: string) =>
  (await gateway.replicas()).find((replica) => replica.name === name)?.reason;

describe('--resume', () => {
  test('takes a corrected command, and keeps it', async () => {
    const { gateway, roll, folder } = await setUp(['a', 'b', 'c']);
    const log = join(folder, 'log');
    const first = await roll('a', 'b', ...QUICK, '--exec', 'exit 3');
    expect(first.stdout).toContain(
      'Read what it printed where the rollout runs. gateway rollout --resume --state',
    );
    const second = await roll('--resume', '--exec', `echo {name} >>${log}; test {name} = a`);
    expect(second.stdout).toContain('b: is drained; its command ended with 1\n');
    expect((await roll('--resume', '--exec', `echo {name} >>${log}`)).exitCode).toBe(0);
    expect(await readFile(log, 'utf8')).toBe('a\nb\nb\n');
    expect(await drainedNames(gateway)).toEqual([]);
  });

  test('takes a corrected time-out: an engine that comes late is not restarted again', async () => {
    const { roll, folder, replicas } = await setUp(['a', 'b']);
    const log = join(folder, 'log');
    replicas.get('a')?.answerProbes(answerError(503));
    const first = await roll('a', ...QUICK, '--exec', `echo x >>${log}`, '--restart-timeout', '1s');
    expect(first.stdout).toContain('a: is drained; it is not ready');
    expect(first.stdout).toContain('--restart-timeout 1h does not restart it again');
    replicas.get('a')?.list({ models: ['m'] });
    expect((await roll('--resume', '--restart-timeout', '30s')).exitCode).toBe(0);
    expect(await readFile(log, 'utf8')).toBe('x\n');
  });

  test('leaves a replica out with --skip: it stays drained, and is in nobody’s way', async () => {
    const { gateway, roll } = await setUp(['a', 'b', 'c']);
    expect(await roll('a', 'b', ...QUICK, '--exec', 'test {name} = b')).toMatchObject({ exitCode: 1 });
    const { stdout, exitCode } = await roll('--resume', '--skip', 'a');
    expect(stdout).toMatch(/1 of 2 replicas done, 1 left out\n$/);
    expect(exitCode).toBe(0);
    expect(await drainedNames(gateway)).toEqual(['a']);
    expect(await reasonOf(gateway, 'a')).toBe('left drained by a rollout');
    expect(await roll('c', ...QUICK, '--exec', 'true')).toMatchObject({ exitCode: 0 });
  });

  test('refuses to skip or accept what is none of its replicas, or is done', async () => {
    const { roll } = await setUp(['a', 'b', 'c']);
    expect(await roll('a', 'b', ...QUICK, '--exec', 'test {name} = a')).toMatchObject({ exitCode: 1 });
    for (const wrong of [
      ['--skip', 'a'],
      ['--accept', 'c'],
      ['--skip', 'b', '--accept', 'b'],
    ]) {
      const { exitCode, stderr } = await roll('--resume', ...wrong);
      expect(stderr).toMatch(/nothing left to do for "[ac]"|"b" cannot be skipped and accepted/);
      expect(exitCode).toBe(2);
    }
  });
});

test('what is over leaves nothing behind in the reasons of replicas but what a person has given', async () => {
  const { gateway, roll } = await setUp(['a', 'b']);
  await roll('a', ...QUICK, '--exec', 'true');
  await roll('b', ...QUICK, '--exec', 'true', '--reason', 'new weights');
  expect(await reasonOf(gateway, 'a')).toBeNull();
  expect(await reasonOf(gateway, 'b')).toBe('new weights');
});

describe('a replica that is worse', () => {
  const BAD = ['a', 'b', '--ramp', '0s', '--exec', 'true'];

  async function setUpBad() {
    const scene = await setUp(['a', 'b', 'c']);
    scene.replicas.get('a')?.answer(answerError(500));
    return scene;
  }

  test('serves after --accept, and the rollout goes on', async () => {
    const { gateway, begin } = await setUpBad();
    const first = await underLoad(gateway, begin(BAD));
    expect(first.stdout).toContain('take it as it is: gateway rollout --resume');
    expect(first.exitCode).toBe(3);
    const { stdout, exitCode } = await underLoad(
      gateway,
      begin(['--resume', '--accept', 'a', '--verdict', 'off']),
    );
    expect(stdout).toMatch(/a: was accepted although it is worse than its peers/);
    expect(exitCode).toBe(0);
    expect(await drainedNames(gateway)).toEqual([]);
    expect(await reasonOf(gateway, 'a')).toBeNull();
  });

  test('is rolled back by the command of --on-bad, and the rollout stops', async () => {
    const { gateway, begin, roll, folder } = await setUpBad();
    const log = join(folder, 'log');
    const rollout = begin([...BAD, '--on-bad', `echo back {name} >>${log}`]);
    const { stdout, exitCode } = await underLoad(gateway, rollout);
    expect(stdout).toMatch(/a: is worse than its peers: .*\. It was rolled back, and serves\n/);
    expect(stdout).toContain('0 of 2 replicas done, 1 rolled back. To go on');
    expect(exitCode).toBe(3);
    expect(await readFile(log, 'utf8')).toBe('back a\n');
    expect(await drainedNames(gateway)).toEqual([]);
    // It is rolled again.
    const second = await roll('--resume', '--verdict', 'off', '--exec', `echo again {name} >>${log}`);
    expect(second.exitCode).toBe(0);
    expect(await readFile(log, 'utf8')).toBe('back a\nagain a\nagain b\n');
  });

  test('is rolled back, and the next one follows if that is wanted', async () => {
    const { gateway, begin, replicas } = await setUpBad();
    replicas.get('b')?.answer(answerError(500));
    const rollout = begin([...BAD, '--on-bad', 'true', '--on-bad-then', 'continue']);
    const { stdout, exitCode } = await underLoad(gateway, rollout);
    expect(stdout).toContain('replicas done');
    expect(stdout).toContain('a: is being drained');
    expect(stdout).toContain('b: is being drained');
    expect(exitCode).toBe(3);
    expect(await drainedNames(gateway)).toEqual([]);
  });

  test('stays drained if it cannot be rolled back', async () => {
    const { gateway, begin } = await setUpBad();
    const rollout = begin([...BAD, '--on-bad', 'false']);
    const { stdout, exitCode } = await underLoad(gateway, rollout);
    expect(stdout).toContain('It was not rolled back: it is drained; its command ended with 1');
    expect(exitCode).toBe(3);
    expect(await drainedNames(gateway)).toEqual(['a']);
  });
});

test('an engine that fails its probe after it was rolled back is not taken for one that serves', async () => {
  const { gateway, begin, replicas } = await setUp(['a', 'b', 'c']);
  replicas.get('a')?.answer(answerError(500));
  const rollout = begin([
    'a',
    '--ramp',
    '0s',
    '--probe',
    '--exec',
    'true',
    '--on-bad',
    'true',
    '--restart-timeout',
    '2s',
  ]);
  await rollout.untilWritten('a: is compared');
  replicas.get('a')?.answerProbes(asEngine(answerError(500)));
  const { stdout, exitCode } = await underLoad(gateway, rollout);
  expect(stdout).toContain('It was not rolled back: it is drained; it is not ready');
  expect(exitCode).toBe(3);
  expect(await drainedNames(gateway)).toEqual(['a']);
});
