import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { Finding } from '#conditions';
import { untilCondition, untilOver } from '#testkit/conditions.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { createHistoryProducer } from '../../../src/gateway/conditions/history-conditions.ts';

const HEALTHY = {
  blocks: 0,
  records: 0,
  recordBytes: 0,
  usedBytes: 0,
  waitingBytes: 0,
  leftOut: 0,
  problem: null,
  setAside: null,
};

test('records that were left out are told for a quarter of an hour, and a file that was set aside for a day', () => {
  const now = {
    ms: 0,
    state: HEALTHY as Parameters<typeof createHistoryProducer>[0]['state'] extends () => infer S ? S : never,
  };
  const produce = createHistoryProducer({
    state: () => now.state,
    path: '/s/history.db',
    nowMs: () => now.ms,
  });
  const look = (ms: number, change: object) => {
    Object.assign(now, { ms, state: { ...HEALTHY, ...change } });
    return [...(produce() as Iterable<Finding>)].map(({ id, figures }) => [id, figures]);
  };
  expect(look(0, {})).toEqual([]);
  expect(look(1_000, { leftOut: 5 })).toEqual([['history_incomplete', { left_out: 5 }]]);
  expect(look(900_000, { leftOut: 5 })).toHaveLength(1);
  const setAside = { name: 'history.db.aside-1', reason: 'version_2' };
  expect(look(901_000, { leftOut: 5, setAside })).toEqual([
    ['history_set_aside', { reason: 'it is of version 2', aside: '/s/history.db.aside-1' }],
  ]);
  expect(look(901_000 + 24 * 3_600_000, { leftOut: 5, setAside })).toEqual([]);
  now.state = null;
  expect([...(produce() as Iterable<Finding>)]).toEqual([]);
});

/** Starts a gateway whose state_dir is as a function leaves it. */
async function startWith(prepare: (path: string) => unknown): Promise<{
  readonly gateway: StartedGateway;
  readonly path: string;
}> {
  const replica = await startFakeReplica({ name: 'a' });
  const stateDir = await temporaryFolder();
  const path = join(stateDir, 'history.db');
  await prepare(path);
  const gateway = await startGateway({ replicas: [replica], stateDir, config: { history: {} } });
  return { gateway, path };
}

const requestsOf = async (gateway: StartedGateway) => {
  const answer = (await (await gateway.admin('/admin/usage?since=1h')).json()) as {
    total: { requests: number };
    gaps: readonly object[];
  };
  return [answer.total.requests, answer.gaps];
};

test('a history that cannot be opened is told with the reason; what ended meanwhile is in it afterwards', async () => {
  const started = await startWith((file) => mkdir(file));
  await using gateway = started.gateway;
  for (let sent = 0; sent < 5; sent += 1) expect((await gateway.chat()).status).toBe(200);
  const { subject, sentence, severity } = await untilCondition(gateway, 'history_not_written');
  expect([subject, severity]).toEqual([started.path, 'warning']);
  expect(sentence).toMatch(/history\.db cannot be written: it cannot be opened$/);
  await rm(started.path, { recursive: true });
  await untilOver(gateway, 'history_not_written');
  expect(await requestsOf(gateway)).toEqual([5, []]);
});

test('a history that another process uses is told, and nothing of either is lost', async () => {
  let other: DatabaseSync | undefined;
  const { gateway: started } = await startWith((file) => {
    other = new DatabaseSync(file);
    other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  });
  await using gateway = started;
  expect((await gateway.chat()).status).toBe(200);
  const { sentence } = await untilCondition(gateway, 'history_not_written');
  expect(sentence).toMatch(/: another process uses it$/);
  other?.close();
  await untilOver(gateway, 'history_not_written');
  expect(await requestsOf(gateway)).toEqual([1, []]);
});

test('a damaged history is told with where it is now, and a new one begins', async () => {
  const { gateway: started, path } = await startWith((file) => writeFile(file, 'x'.repeat(100_000)));
  await using gateway = started;
  expect((await gateway.chat()).status).toBe(200);
  const { sentence } = await untilCondition(gateway, 'history_set_aside');
  const [aside = ''] = (await readdir(join(path, '..'))).filter((name) => name.includes('.aside-'));
  expect(sentence).toBe(
    `the history ${path} could not be used (it is damaged), and a new one has begun; the old one is ${join(path, '..', aside)}`,
  );
  expect(await requestsOf(gateway)).toEqual([1, []]);
});

test('what ended while a reload had switched the history off is a gap of its answers', async () => {
  const { gateway: started } = await startWith(() => undefined);
  await using gateway = started;
  await gateway.chat();
  await gateway.waitForRecords(1);
  gateway.writeConfig({ config: { history: 'off' } });
  await gateway.reload();
  for (let sent = 0; sent < 2; sent += 1) await gateway.chat();
  await gateway.waitForRecords(3);
  gateway.writeConfig({});
  await gateway.reload();
  await gateway.chat();
  expect(await requestsOf(gateway)).toEqual([2, [expect.objectContaining({ reason: 'off', records: 2 })]]);
});
