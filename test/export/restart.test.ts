import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FakeCollector, readSpans, startFakeCollector } from '#testkit/fake-collector.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const AWAY = { status: 503 };

let stateDir: string;
let replica: FakeReplica;
let collector: FakeCollector;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
  [replica, collector] = await Promise.all([startFakeReplica(), startFakeCollector()]);
});
afterEach(async () => {
  await Promise.all([replica.close(), collector.close()]);
  await rm(stateDir, { recursive: true });
});

/** A gateway over the same state_dir as the one before it. */
const start = (exporting: Readonly<Record<string, unknown>> = {}) =>
  startGateway({
    replicas: [replica],
    collector,
    stateDir,
    config: {
      export: { retry: { initial: '1ms', max: '5ms' }, ...exporting },
      shutdown: { flush: '50ms' },
    },
  });

async function serve(gateway: StartedGateway, count: number): Promise<readonly string[]> {
  const responses = await Promise.all(Array.from({ length: count }, () => gateway.chat()));
  await Promise.all(responses.map((response) => response.arrayBuffer()));
  const records = await gateway.waitForRecords(count);
  return records.map(({ request_id }) => request_id);
}

const requestIds = () => collector.spans.map(({ attributes }) => attributes['gateway.request_id']);
const spoolFiles = () => readdir(join(stateDir, 'spool'));

test('a shutdown with the collector away loses nothing: its records are sent at the next start, before new ones', async () => {
  collector.answerAlways(AWAY);
  await using first = await start({ batch_size: 4 });
  const spooled = await serve(first, 10);
  expect(await first.close()).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
  expect(await spoolFiles()).not.toEqual([]);

  collector.answerAlways({});
  await using second = await start();
  const fresh = await serve(second, 2);
  await collector.waitFor(({ spans }) => spans.length === 12);
  expect(requestIds().slice(0, 10).toSorted()).toEqual(spooled.toSorted());
  expect(requestIds().slice(10).toSorted()).toEqual(fresh.toSorted());
  await expect.poll(spoolFiles).toEqual([]);
  expect(await second.stats()).toMatchObject({
    recorded: 2,
    restored: 10,
    exported: 12,
    spooled: 0,
    queued: 0,
  });
});

test('records wait for as many restarts as the collector needs', async () => {
  collector.answerAlways(AWAY);
  const expected: string[] = [];
  for (let run = 0; run < 3; run += 1) {
    await using gateway = await start();
    expected.push(...(await serve(gateway, 2)));
    expect((await gateway.close()).undeliveredRecords).toBe(0);
  }
  collector.answerAlways({});
  await using _last = await start();
  await collector.waitFor(({ spans }) => spans.length === expected.length);
  expect(requestIds().toSorted()).toEqual(expected.toSorted());
});

test('a start while the collector is still away serves requests and holds the queue to its bound', async () => {
  collector.answerAlways(AWAY);
  {
    await using first = await start();
    await serve(first, 6);
  }
  await using second = await start({ queue_size: 4, batch_size: 2 });
  await serve(second, 10);
  const stats = await second.stats();
  expect(stats.queued).toBeLessThanOrEqual(4);
  expect(stats).toMatchObject({ recorded: 10, exported: 0, rejected: 0 });
  const { recorded = 0, restored = 0, dropped = 0, queued = 0 } = stats;
  expect(recorded + restored).toBe(dropped + queued);
});

test('the spool goes to a file once the configuration exports to a file', async () => {
  collector.answerAlways(AWAY);
  const spooled = await (async () => {
    await using first = await start();
    return await serve(first, 3);
  })();
  await using second = await start({ to: 'file' });
  await expect.poll(async () => (await second.stats()).exported).toBe(3);
  await second.close();
  const lines = (await readFile(join(stateDir, 'records.jsonl'), 'utf8')).trimEnd().split('\n');
  const ids = lines.flatMap(readSpans).map(({ attributes }) => attributes['gateway.request_id']);
  expect(ids.toSorted()).toEqual(spooled.toSorted());
  expect(await spoolFiles()).toEqual([]);
});

test('a spool that cannot be written is logged, and its records count as undelivered', async () => {
  collector.answerAlways(AWAY);
  await writeFile(join(stateDir, 'spool'), 'in the way');
  await using gateway = await start();
  await serve(gateway, 3);
  expect(await gateway.close()).toEqual({ cutRequests: 0, undeliveredRecords: 3 });
  expect(gateway.logLines.join('\n')).toContain('spool cannot be written');
});
