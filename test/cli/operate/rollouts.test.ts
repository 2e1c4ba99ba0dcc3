import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { replicaFacts, rolloutFacts } from '#testkit/rollout-facts.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { invoke, start } from '../invoke.ts';

const TOKEN = { SVC_ADMIN_TOKEN: ADMIN_TOKEN };

/** A gateway that knows one rollout, as its driver has told it. */
async function setUp(changes: Parameters<typeof rolloutFacts>[0] = {}) {
  const gateway = await startGateway({ replicas: [{ name: 'a', url: 'http://127.0.0.1:1' }] });
  const tell = async (facts: ReturnType<typeof rolloutFacts>) =>
    (
      await gateway.admin(`/admin/rollouts/${facts.id}/report`, {
        method: 'POST',
        body: JSON.stringify(facts),
      })
    ).status;
  expect(await tell(rolloutFacts(changes))).toBe(200);
  const call = (...args: readonly string[]) =>
    invoke(['rollouts', ...args, '--admin', gateway.adminUrl], TOKEN);
  return { gateway, tell, call };
}

const shown = async (gateway: StartedGateway) =>
  (await gateway.admin('/admin/rollouts/0000000a')).json() as Promise<{
    state: string;
    asked: string | null;
  }>;

test('gateway rollouts lists the rollouts, with who drives each', async () => {
  const { gateway, call } = await setUp();
  await using _ = gateway;
  const { stdout, exitCode } = await call();
  expect(stdout).toMatch(
    /^ID +STATE +DONE +BEGAN +DRIVEN BY +WHAT\n0000000a +running +0\/2 .*ann@ops-1 +0 of 2/,
  );
  expect(exitCode).toBe(0);
  expect(JSON.parse((await call('--json')).stdout)).toMatchObject({ rollouts: [{ id: '0000000a' }] });
});

test('gateway rollouts ID shows its replicas, and the next step', async () => {
  const steps = [
    { step: 'rollout_drain', started_at: '2026-01-01T00:00:00Z', duration_ms: 1_500, outcome: 'ok' },
  ];
  const { gateway, call } = await setUp({
    state: 'stopped',
    problem: { kind: 'bad', replica: 'a', sentence: 'is \u001b[31mworse', advice: 'restart it' },
    replicas: [
      replicaFacts('a', { phase: 'stopped', verdict: 'bad', text: 'is worse', steps }),
      replicaFacts('b'),
    ],
  });
  await using _ = gateway;
  const { stdout } = await call('0000000a');
  expect(stdout).toMatch(/\nstopped by: a: is .*worse\nnext: restart it\n/);
  expect(stdout).toMatch(/\na +stopped +drain 1\.5 s +bad +is worse\n/);
  expect(stdout).not.toContain('\u001b');
  expect((await call()).stdout).toMatch(/ a: is .*worse\n$/);
  expect(await call('0000000b')).toMatchObject({ exitCode: 1 });
});

describe('what is asked', () => {
  test('of the only rollout under way needs no id', async () => {
    const { gateway, call } = await setUp();
    await using _ = gateway;
    expect((await call('pause')).stdout).toContain('0000000a is asked: it begins no further replica');
    expect(await shown(gateway)).toMatchObject({ state: 'running', asked: 'pause' });
    expect(await call('continue', '0000000a')).toMatchObject({ exitCode: 0 });
    expect(await shown(gateway)).toMatchObject({ asked: null });
    expect(await call('abort')).toMatchObject({ exitCode: 0 });
    expect(await shown(gateway)).toMatchObject({ asked: 'abort' });
  });

  test('is refused where it makes no sense', async () => {
    const { gateway, call, tell } = await setUp({ state: 'done' });
    await using _ = gateway;
    expect((await call('pause')).stderr).toContain('no rollout is under way');
    expect((await call('pause', '0000000a')).stderr).toContain('This rollout is done');
    const more = [
      rolloutFacts({ id: '0000000b', replicas: [replicaFacts('c')] }),
      rolloutFacts({ id: '0000000c', replicas: [replicaFacts('d')] }),
    ];
    for (const facts of more) expect(await tell(facts)).toBe(200);
    expect((await call('pause')).stderr).toContain('several rollouts are under way');
    expect(await call('pause', 'a', 'b')).toMatchObject({ exitCode: 2 });
  });
});

test('--watch prints what has changed, until a signal', async () => {
  const { gateway, tell } = await setUp();
  await using _ = gateway;
  const watching = start(['rollouts', '--watch', '--admin', gateway.adminUrl], TOKEN);
  await watching.untilWritten('0 of 2');
  await tell(rolloutFacts({ seq: 2, sentence: '1 of 2 replicas done' }));
  await watching.untilWritten('1 of 2');
  watching.interrupt();
  expect(await watching.ended).toMatchObject({ exitCode: 0 });
});

describe('a report that is none', () => {
  test.each([
    ['', 'body'],
    ['{"id":7}', 'body.id'],
    [JSON.stringify({ ...rolloutFacts(), id: '0000000b' }), 'body.id'],
    [JSON.stringify({ ...rolloutFacts(), replicas: [replicaFacts('../x')] }), 'body.replicas.0.name'],
  ])('%# is refused with the member that is wrong', async (body, param) => {
    const { gateway } = await setUp();
    await using _ = gateway;
    const answer = await gateway.admin('/admin/rollouts/0000000a/report', { method: 'POST', body });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: 'invalid_request', param } });
  });

  test('is refused if it is larger than the API takes', async () => {
    const { gateway } = await setUp();
    await using _ = gateway;
    const body = JSON.stringify({ ...rolloutFacts(), more: 'x'.repeat(70_000) });
    const answer = await gateway.admin('/admin/rollouts/0000000a/report', { method: 'POST', body });
    expect(answer.status).toBe(413);
  });
});

test('a gateway that restarts knows its rollouts', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-rollouts-'));
  const options = { replicas: [{ name: 'a', url: 'http://127.0.0.1:1' }], stateDir: folder.path };
  {
    await using gateway = await startGateway(options);
    const body = JSON.stringify(rolloutFacts({ state: 'stopped' }));
    await gateway.admin('/admin/rollouts/0000000a/report', { method: 'POST', body });
    await gateway.admin('/admin/rollouts/0000000a/abort', { method: 'POST' });
  }
  await using next = await startGateway(options);
  expect(await shown(next)).toMatchObject({ state: 'aborted', sentence: 'admin aborted the rollout' });
});
