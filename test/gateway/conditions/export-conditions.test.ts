import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Finding } from '#conditions';
import type { ExportTrouble } from '#otel';
import { linesOf, untilCondition, untilOver } from '#testkit/conditions.ts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { keepChatting } from '#testkit/load/paced-chats.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import {
  createExportProducer,
  createSpoolProducer,
} from '../../../src/gateway/conditions/export-conditions.ts';

const WELL: ExportTrouble = {
  outage: null,
  rejection: null,
  callMs: 10,
  fill: 0,
  isDropping: false,
  unreadable: { lines: 0, files: 0 },
};
const PROBLEM = { reason: 'timeout', collector: 'http://c', advice: '' };

/** A producer whose figures the test sets. */
function createExport(recordDirectory: string | null = null) {
  const now = { trouble: WELL, dropped: 0, queued: 0, ms: 0 };
  const sources = {
    trouble: () => now.trouble,
    state: () => ({ stats: now, queueCapacity: 100 }),
    recordDirectory,
    spoolDirectory: '/state/spool',
    nowMs: () => now.ms,
  };
  const [produceExport, produceSpool] = [createExportProducer(sources), createSpoolProducer(sources)];
  return {
    now,
    found: () => [...(produceExport() as Iterable<Finding>), ...(produceSpool() as Iterable<Finding>)],
  };
}

test('an export that works has no condition', () => {
  expect(createExport().found()).toEqual([]);
});

test('a queue more than half full tells when it is full, as long as it grows', () => {
  const { now, found } = createExport();
  for (const [ms, fill] of [
    [1_000, 0.3],
    [2_000, 0.5],
  ] as const) {
    Object.assign(now, { ms, trouble: { ...WELL, fill } });
    expect(found()).toEqual([]);
  }
  Object.assign(now, { ms: 3_000, queued: 70, trouble: { ...WELL, fill: 0.7 } });
  expect(found()).toMatchObject([{ id: 'queue_filling', figures: { queued: 70, capacity: 100 } }]);
  expect(found()[0]?.figures).toHaveProperty('left', expect.closeTo(1.5));
  Object.assign(now, { ms: 9_000 });
  found();
  Object.assign(now, { ms: 15_000 });
  expect(found()).toEqual([]);
});

test('dropping that began and ended between two looks is told as well', () => {
  const { now, found } = createExport();
  now.dropped = 7;
  expect(found()).toMatchObject([{ id: 'records_dropped', figures: { dropped: 7 } }]);
  expect(found()).toEqual([]);
  now.trouble = { ...WELL, isDropping: true };
  expect(found()).toMatchObject([{ id: 'records_dropped', figures: { dropped: 7 } }]);
});

test('calls that fail are a collector that is away, or files that cannot be written', () => {
  const outage = { ...PROBLEM, failedCalls: 3 };
  const toCollector = createExport();
  toCollector.now.trouble = { ...WELL, outage, callMs: 9_000 };
  expect(toCollector.found()).toEqual([
    { id: 'collector_away', subject: '', figures: { ...PROBLEM, queued: 0, failed_calls: 3 } },
  ]);
  const toFile = createExport('/var/records');
  toFile.now.trouble = { ...WELL, outage: { ...outage, reason: 'ENOSPC' } };
  expect(toFile.found()).toMatchObject([
    { id: 'records_not_written', subject: '/var/records', figures: { reason: 'the disk is full (ENOSPC)' } },
  ]);
});

test('a call of more than five seconds is slow', () => {
  const { now, found } = createExport();
  now.trouble = { ...WELL, callMs: 5_000 };
  expect(found()).toEqual([]);
  now.trouble = { ...WELL, callMs: 5_001 };
  expect(found()).toMatchObject([{ id: 'collector_slow', figures: { taken: 5.001 } }]);
});

test('rejected records are told with the words of the collector', () => {
  const { now, found } = createExport();
  const rejection = { ...PROBLEM, message: 'no', rejected: 2 };
  now.trouble = { ...WELL, rejection: { ...rejection, isGoingOn: false } };
  expect(found()).toHaveLength(1);
  expect(found()).toEqual([]);
  now.trouble = { ...WELL, rejection: { ...rejection, isGoingOn: true } };
  expect(found()).toEqual([
    { id: 'records_rejected', subject: '', figures: { ...PROBLEM, rejected: 2, collector_message: 'no' } },
  ]);
});

test('a damaged spool is told for a day', () => {
  const { now, found } = createExport();
  now.trouble = { ...WELL, unreadable: { lines: 2, files: 1 } };
  const told = [{ id: 'spool_unreadable', subject: '/state/spool', figures: { lines: 2, files: 1 } }];
  expect(found()).toEqual(told);
  now.ms = 24 * 3_600_000 - 1;
  expect(found()).toEqual(told);
  now.ms += 1;
  expect(found()).toEqual([]);
});

test('a collector that rejects records, and one that is slow, are told until they take them', async () => {
  await using collector = await startFakeCollector();
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [replica],
    collector,
    config: { export: { interval: '50ms' } },
  });
  await using _sending = keepChatting(gateway, { clientCount: 1, pauseMs: 150 });
  collector.answerAlways({ status: 400 });
  const rejected = await untilCondition(gateway, 'records_rejected');
  expect(rejected.sentence).toMatch(/^records rejected since the start: \d+ \(http_400\)$/);
  collector.answerAlways({});
  await untilOver(gateway, 'records_rejected');

  const { promise, resolve } = Promise.withResolvers<void>();
  collector.answerAlways({ after: promise });
  const slow = await untilCondition(gateway, 'collector_slow');
  expect(slow.figures.taken).toBeGreaterThan(5);
  collector.answerAlways({});
  resolve();
  await untilOver(gateway, 'collector_slow', 'collector_away');
});

test('a queue that fills up is told before records are dropped', async () => {
  await using collector = await startFakeCollector();
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [replica],
    collector,
    config: { export: { queue_size: 60, batch_size: 20, interval: '50ms' } },
  });
  collector.answerAlways({ status: 503 });
  await using _sending = keepChatting(gateway, { clientCount: 1, pauseMs: 150 });
  const { sentence } = await untilCondition(gateway, 'queue_filling');
  expect(sentence).toMatch(/^\d+ of 60 records wait: full in \d+ s at this rate$/);
  expect(linesOf(gateway, 'records_dropped')).toEqual([]);
  collector.answerAlways({});
  await untilOver(gateway, 'queue_filling', 'collector_away');
});

test('a spool with damaged lines is told after the start', async () => {
  const stateDir = await temporaryFolder();
  await using collector = await startFakeCollector();
  collector.answerAlways({ status: 503 });
  await using replica = await startFakeReplica();
  const first = await startGateway({
    replicas: [replica],
    collector,
    stateDir,
    config: { shutdown: { flush: '1ms' } },
  });
  await (await first.chat()).arrayBuffer();
  await first.waitForRecords(1);
  await first.close();
  collector.answerAlways({});
  await writeFile(join(stateDir, 'spool', '00000000000001-000001-abcdef01.spool'), 'no record\n');
  await using second = await startGateway({ replicas: [replica], collector, stateDir });
  const { subject, figures } = await untilCondition(second, 'spool_unreadable');
  expect([subject, figures]).toEqual([join(stateDir, 'spool'), { lines: 1, files: 0 }]);
});
