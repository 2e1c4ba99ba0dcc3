import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startAdminProxy } from '#testkit/servers/admin-proxy.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { invoke, start } from '../cli/invoke.ts';
import { drainedNames, QUICK, setUp, TOKEN } from './scene.ts';

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly asked: string | null;
  readonly sentence: string;
  readonly run: number;
  readonly problem: { readonly kind: string; readonly advice: string | null } | null;
  readonly driver: { readonly user: string; readonly token_name: string | null };
  readonly replicas: readonly {
    readonly name: string;
    readonly stage: string;
    readonly phase: string;
    readonly steps: readonly { readonly step: string; readonly outcome: string }[];
  }[];
}

type Reachable = Pick<StartedGateway, 'admin'>;

async function listRollouts(gateway: Reachable): Promise<readonly Shown[]> {
  const answer = await gateway.admin('/admin/rollouts');
  return ((await answer.json()) as { rollouts: Shown[] }).rollouts;
}

/** The latest rollout, with its replicas. */
async function latest(gateway: Reachable): Promise<Shown | null> {
  const [first] = await listRollouts(gateway);
  if (first === undefined) return null;
  return (await (await gateway.admin(`/admin/rollouts/${first.id}`)).json()) as Shown;
}

async function ask(gateway: Reachable, action: 'pause' | 'continue' | 'abort'): Promise<number> {
  const [first] = await listRollouts(gateway);
  const { status } = await gateway.admin(`/admin/rollouts/${first?.id}/${action}`, { method: 'POST' });
  return status;
}

const stateOf = async (gateway: Reachable) => (await latest(gateway))?.state ?? null;

/** A rollout of `a`, `b` and `c` whose commands run until they may end. */
async function setUpHeld(...more: readonly string[]) {
  const scene = await setUp(['a', 'b', 'c']);
  const open = (name: string) => writeFile(join(scene.folder, name), '');
  const exec = `echo started; until test -e ${scene.folder}/{name}; do sleep 0.05; done`;
  const rollout = scene.begin(['--all', ...QUICK, '--exec', exec, ...more]);
  await rollout.untilWritten('a | started');
  return { ...scene, rollout, open };
}

test('everybody sees who drives a rollout, how far it is, and its steps', async () => {
  const { gateway, rollout, open } = await setUpHeld('--reason', 'new weights');
  await expect
    .poll(() => latest(gateway))
    .toMatchObject({
      state: 'running',
      asked: null,
      run: 1,
      driver: { token_name: 'admin', heard_at: expect.any(String) },
      plan: { restarted_by: 'command', reason: 'new weights' },
      replicas: [
        {
          name: 'a',
          stage: 'draining',
          phase: 'restarting',
          steps: [{ step: 'rollout_drain', outcome: 'ok' }],
        },
        { name: 'b', stage: 'waiting', phase: 'waiting', steps: [] },
        { name: 'c', stage: 'waiting', phase: 'waiting', steps: [] },
      ],
    });
  // The command may hold a secret.
  expect(await (await gateway.admin('/admin/rollouts')).text()).not.toContain('until test');
  for (const name of ['a', 'b', 'c']) await open(name);
  expect(await rollout.ended).toMatchObject({ exitCode: 0 });
  expect(await latest(gateway)).toMatchObject({
    state: 'done',
    sentence: '3 of 3 replicas done',
    done_count: 3,
    problem: null,
  });
});

describe('a pause that somebody else asks for', () => {
  test('lets what is under way go to its end, and then holds until it is continued', async () => {
    const { gateway, rollout, open } = await setUpHeld();
    expect(await ask(gateway, 'pause')).toBe(200);
    expect(await latest(gateway)).toMatchObject({ state: 'running', asked: 'pause' });
    await rollout.untilWritten('pauses: admin has asked for it');
    await open('b');
    await open('c');
    await open('a');
    await expect.poll(() => stateOf(gateway)).toBe('paused');
    expect(await drainedNames(gateway)).toEqual([]);
    expect(rollout.output).not.toContain('b: is being drained');
    expect(await ask(gateway, 'continue')).toBe(200);
    const { stdout, exitCode } = await rollout.ended;
    expect(stdout).toContain('goes on: admin has asked for it');
    expect(exitCode).toBe(0);
  });

  test('does not outlive who drives the rollout: --resume goes on', async () => {
    const { gateway, rollout, roll, open } = await setUpHeld();
    await ask(gateway, 'pause');
    await rollout.untilWritten('pauses');
    rollout.interrupt();
    expect(await rollout.ended).toMatchObject({ exitCode: 130 });
    expect(await latest(gateway)).toMatchObject({ state: 'stopped', problem: { kind: 'interrupted' } });
    expect(await ask(gateway, 'continue')).toBe(409);
    for (const name of ['a', 'b', 'c']) await open(name);
    expect(await roll('--resume')).toMatchObject({ exitCode: 0 });
    expect(await latest(gateway)).toMatchObject({ state: 'done', run: 2 });
    expect(await listRollouts(gateway)).toHaveLength(1);
  });
});

test('an abort that somebody else asks for ends the command, and leaves nothing to resume', async () => {
  const { gateway, rollout, roll, statePath } = await setUpHeld();
  expect(await ask(gateway, 'abort')).toBe(200);
  const { stdout, exitCode } = await rollout.ended;
  expect(stdout).toContain('a: is drained; its command was interrupted');
  expect(stdout).toMatch(/\n0 of 3 replicas done when admin aborted the rollout\n$/);
  expect(exitCode).toBe(5);
  expect(await latest(gateway)).toMatchObject({
    state: 'aborted',
    sentence: '0 of 3 replicas done when admin aborted the rollout',
    problem: { kind: 'aborted', replica: 'a' },
    replicas: [
      {
        steps: [
          { step: 'rollout_drain', outcome: 'ok' },
          { step: 'restart', outcome: 'interrupted' },
        ],
      },
      {},
      {},
    ],
  });
  await expect(access(statePath)).rejects.toThrow('ENOENT');
  // It is in nobody's way.
  const [a] = await gateway.replicas();
  expect(a).toMatchObject({ name: 'a', drained: true, reason: 'left drained by a rollout' });
  expect(await roll('b', ...QUICK, '--exec', 'true')).toMatchObject({ exitCode: 0 });
  expect(await ask(gateway, 'abort')).toBe(409);
});

test('one that is interrupted before a gateway has answered its first report leaves nothing behind', async () => {
  const { gateway, statePath } = await setUp(['a', 'b']);
  await using proxy = await startAdminProxy(gateway.adminUrl, async () => undefined);
  const isHeld = proxy.hold('before', (call) => call.endsWith('/report'));
  const args = ['rollout', 'a', ...QUICK, '--exec', 'true', '--admin', proxy.url, '--state', statePath];
  const rollout = start(args, TOKEN);
  await isHeld;
  rollout.interrupt();
  const { stdout, exitCode } = await rollout.ended;
  expect(stdout).toMatch(/nothing was done\n$/);
  expect(exitCode).toBe(130);
  expect(await drainedNames(gateway)).toEqual([]);
  expect(await latest(gateway)).toMatchObject({ state: 'aborted', problem: { kind: 'interrupted' } });
  await expect(access(statePath)).rejects.toThrow('ENOENT');
});

test('who only reads may look, and not ask', async () => {
  const readToken = 'read-token-0123456789abcdef';
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: 'http://127.0.0.1:1' }],
    readToken,
  });
  const call = (path: string, method: 'GET' | 'POST') =>
    fetch(`${gateway.adminUrl}${path}`, { method, headers: { authorization: `Bearer ${readToken}` } });
  expect((await call('/admin/rollouts', 'GET')).status).toBe(200);
  for (const action of ['pause', 'continue', 'abort', 'report']) {
    expect((await call(`/admin/rollouts/00000001/${action}`, 'POST')).status).toBe(403);
  }
});

test('another rollout of the same replicas is refused and told which one is at work, before anything is drained', async () => {
  const { gateway, rollout, folder, open } = await setUpHeld();
  const args = ['rollout', 'c', 'b', ...QUICK, '--exec', 'true', '--admin', gateway.adminUrl];
  const { exitCode, stderr } = await invoke([...args, '--state', join(folder, 'other.json')], TOKEN);
  const [known] = await listRollouts(gateway);
  expect(stderr).toMatch(
    new RegExp(
      `^gateway: nothing was begun: The rollout ${known?.id} of .*@.*is at work on these replicas too: b, c`,
    ),
  );
  expect(exitCode).toBe(1);
  for (const name of ['a', 'b', 'c']) await open(name);
  expect(await rollout.ended).toMatchObject({ exitCode: 0 });
});

test('a rollout goes on elsewhere by its id, with its command given anew', async () => {
  const { gateway, rollout, folder } = await setUpHeld();
  rollout.interrupt();
  await rollout.ended;
  const [known] = await listRollouts(gateway);
  const elsewhere = ['--admin', gateway.adminUrl, '--state', join(folder, 'elsewhere.json')];
  const resume = ['rollout', '--resume', known?.id ?? '', ...elsewhere];
  const without = await invoke(resume, TOKEN);
  expect(without.stderr).toContain('the command of --exec is known only where the rollout began');
  const second = await invoke([...resume, '--exec', 'true'], TOKEN);
  expect(second.stdout).toMatch(/3 of 3 replicas done\n$/);
  expect(await latest(gateway)).toMatchObject({ state: 'done', run: 2 });
  // Where it began it is over.
  const first = await invoke(['rollout', '--resume', '--state', join(folder, 'rollout.json')], TOKEN);
  expect(first.stderr).toContain('this rollout has gone on elsewhere');
  expect(first.exitCode).toBe(1);
});

test('a rollout that somebody drives is not driven by a second one', async () => {
  const { gateway, rollout, folder, open } = await setUpHeld();
  const [known] = await listRollouts(gateway);
  const args = ['rollout', '--resume', known?.id ?? '', '--admin', gateway.adminUrl, '--exec', 'true'];
  const { stderr, exitCode } = await invoke([...args, '--state', join(folder, 'elsewhere.json')], TOKEN);
  expect(stderr).toMatch(/drives this rollout: stop it there, or abort it/);
  expect(exitCode).toBe(1);
  for (const name of ['a', 'b', 'c']) await open(name);
  expect(await rollout.ended).toMatchObject({ exitCode: 0 });
});

test('gateways that share nothing are steered from each of them', async () => {
  const { gateway, replicas, folder } = await setUp(['a', 'b']);
  await using second = await startGateway({ replicas: [...replicas.values()] });
  const exec = `echo started; until test -e ${folder}/{name}; do sleep 0.05; done`;
  const admins = ['--admin', gateway.adminUrl, '--admin', second.adminUrl];
  const args = [
    'rollout',
    '--all',
    ...QUICK,
    '--exec',
    exec,
    ...admins,
    '--state',
    join(folder, 'both.json'),
  ];
  const rollout = start(args, TOKEN);
  await rollout.untilWritten('a | started');
  await ask(second, 'pause');
  await rollout.untilWritten('pauses');
  await expect.poll(() => latest(gateway)).toMatchObject({ asked: 'pause' });
  await ask(gateway, 'continue');
  await rollout.untilWritten('goes on');
  await expect.poll(() => latest(second)).toMatchObject({ asked: null });
  for (const name of ['a', 'b']) await writeFile(join(folder, name), '');
  expect(await rollout.ended).toMatchObject({ exitCode: 0 });
  expect([await stateOf(gateway), await stateOf(second)]).toEqual(['done', 'done']);
});
