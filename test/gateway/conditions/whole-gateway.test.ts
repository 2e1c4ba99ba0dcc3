import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RolloutFacts } from '#rollout-board/facts';
import { linesOf, untilCondition, untilOver } from '#testkit/conditions.ts';
import {
  answerJson,
  COMPLETION,
  hang,
  refusedUrlBeside,
  startFakeReplica,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { keepChatting } from '#testkit/load/paced-chats.ts';
import { stoppedFacts } from '#testkit/rollout-facts.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

test('a drain of two hours is told with its reason until the replica is undrained', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  const stateDir = await mkdtemp(join(tmpdir(), 'spangate-old-drain-'));
  try {
    {
      await using first = await startGateway({ replicas, stateDir });
      await first.admin('/admin/replicas/a/drain?reason=new+weights', { method: 'POST' });
    }
    const path = join(stateDir, 'drains.json');
    const since = new Date(Date.now() - 7_200_000).toISOString();
    const text = await readFile(path, 'utf8');
    await writeFile(path, text.replaceAll(/"since":\s*"[^"]+"/g, `"since":"${since}"`));

    await using gateway = await startGateway({ replicas, stateDir });
    const { subject, sentence } = await untilCondition(gateway, 'drain_old');
    expect([subject, sentence]).toEqual(['a', 'a has been drained for 2 h: new weights']);
    await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });
    await untilOver(gateway, 'drain_old');
    expect(linesOf(gateway, 'drain_old')).toHaveLength(2);
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
});

test('a replica that hangs has a backlog until its requests are gone', async () => {
  await using a = await startFakeReplica({ name: 'a', script: hang });
  await using b = await startFakeReplica({ name: 'b' });
  await using gateway = await startGateway({ replicas: [a, b] });
  const leaving = new AbortController();
  const sent = Array.from({ length: 40 }, () =>
    gateway.chat({}, { signal: leaving.signal }).catch(() => null),
  );
  expect(await untilCondition(gateway, 'replica_backlog')).toMatchObject({
    subject: 'a',
    sentence: 'a has 20 requests in flight, its peers 0',
  });
  leaving.abort();
  await Promise.all(sent);
  await untilOver(gateway, 'replica_backlog');
});

test('a replica in trouble without health checks is told until they are on', async () => {
  await using replica = await startFakeReplica({ name: 'b' });
  const replicas = [{ name: 'a', url: refusedUrlBeside(replica), models: ['m'] }, replica];
  await using gateway = await startGateway({ replicas });
  expect(await untilCondition(gateway, 'health_checks_off')).toMatchObject({
    severity: 'notice',
    sentence: 'health checks are off, and replicas are in trouble: a',
  });
  gateway.writeConfig({ config: { health: {} } });
  expect((await gateway.reload()).status).toBe(200);
  await untilOver(gateway, 'health_checks_off');
});

async function reportRollout(gateway: StartedGateway, facts: RolloutFacts) {
  const response = await gateway.admin(`/admin/rollouts/${facts.id}/report`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(facts),
  });
  expect(response.status).toBe(200);
}

test('a rollout that stops in the middle is told until it goes on', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await startGateway({ replicas: [replica] });
  await reportRollout(gateway, stoppedFacts());
  expect(await untilCondition(gateway, 'rollout_stopped')).toMatchObject({
    sentence: 'the rollout has stopped at a: slower than its peers',
  });
  await reportRollout(gateway, stoppedFacts('aborted'));
  await untilOver(gateway, 'rollout_stopped');
});

test('many wrong tokens at the admin API are told until they stop', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await startGateway({ replicas: [replica] });
  const headers = { Authorization: 'Bearer of-last-year' };
  for (let count = 0; count < 12; count += 1) await fetch(`${gateway.adminUrl}/admin/stats`, { headers });
  expect(await untilCondition(gateway, 'admin_tokens_refused')).toMatchObject({ figures: { refused: 12 } });
  await untilOver(gateway, 'admin_tokens_refused');
});

const WELL = answerJson(COMPLETION);
const FAILED = answerJson({ error: { message: 'out of memory' } }, { status: 500 });
const WRONG = answerJson({ error: { message: 'too long' } }, { status: 400 });

/** Ten chats per second at most: shares of the last minute count, and how long they last. */
const TRAFFIC = { clientCount: 1, pauseMs: 100 };

test('requests that fail, and the attempts behind them, are told until they go well', async () => {
  await using replica = await startFakeReplica({ name: 'a', script: FAILED });
  await using gateway = await startGateway({ replicas: [replica] });
  await using _traffic = keepChatting(gateway, TRAFFIC);
  expect(await untilCondition(gateway, 'requests_failing')).toMatchObject({
    severity: 'critical',
    sentence: '100 % of requests fail',
  });
  await untilCondition(gateway, 'replica_attempts_failing');
  replica.answer(WELL);
  await untilOver(gateway, 'requests_failing', 'replica_attempts_failing');
  replica.answer(WRONG);
  expect(await untilCondition(gateway, 'client_errors_many')).toMatchObject({ figures: { code: '400' } });
  replica.answer(WELL);
  await untilOver(gateway, 'client_errors_many');
});

test('a replica whose errors retry hides, and one that refuses what its peers answer, are told alone', async () => {
  await using a = await startFakeReplica({ name: 'a', script: FAILED });
  await using b = await startFakeReplica({ name: 'b' });
  await using gateway = await startGateway({
    replicas: [a, b],
    config: { retry: { statuses: [500] } },
  });
  await using _traffic = keepChatting(gateway, TRAFFIC);
  expect(await untilCondition(gateway, 'replica_attempts_failing')).toMatchObject({ subject: 'a' });
  await untilOver(gateway, 'requests_failing');
  a.answer(WRONG);
  expect(await untilCondition(gateway, 'replica_refuses_requests')).toMatchObject({ subject: 'a' });
  a.answer(WELL);
  await untilOver(gateway, 'replica_attempts_failing', 'replica_refuses_requests');
});
