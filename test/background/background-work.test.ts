import { describe, expect, onTestFinished, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import type { BackgroundResponse } from '#proxy';
import { BackgroundCounts } from '#replicas/registry';
import { EventLog } from '#testkit/event-log.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { BackgroundWork, MAX_FOLLOWED_RESPONSES } from '../../src/background/background-work.ts';

const RECORD: RequestRecord = {
  request_id: 'r',
  trace_id: 't',
  ts: '2026-01-01T00:00:00.000Z',
  endpoint: '/v1/responses',
  e2e_ms: 5,
  status: 200,
  stream: false,
};

const toHandedOver = (slot: number, id: string | null): BackgroundResponse => ({
  worker: 0,
  slot,
  id,
  record: RECORD,
  http: { scheme: 'http' },
  span: {
    start: { method: 'POST', route: '/v1/responses' },
    ids: { traceId: 't', spanId: 's' },
    startedEpochMs: Date.now(),
    operation: null,
    lastAttempt: null,
    attempts: [],
  },
  limitRows: [],
  chargedTokens: 0,
});

/** Work at a replica that answers nothing. `write`: what the file does. */
async function open({
  limitMs = 60_000,
  write = async () => undefined,
}: {
  limitMs?: number;
  write?: (text: string) => Promise<void>;
} = {}) {
  const replica = await startFakeReplica({ name: 'a' });
  replica.answerProbes((exchange) => exchange.reset());
  const { registry, shared } = createPools([toReplicaConfig('a', ['m'], { url: replica.url })]);
  const slot = registry.find('a')?.slot ?? -1;
  const records: RequestRecord[] = [];
  const counts = new BackgroundCounts();
  const say = () => undefined;
  const work = new BackgroundWork({
    registry,
    counts,
    shared,
    limitMs: () => limitMs,
    log: { info: say, warn: say, error: say },
    currency: 'USD',
    limitRows: { nameOf: () => null, useTokens: () => undefined },
    endParkedSpan: (_, record) => void records.push(record),
    file: { read: async () => ({ value: null, isDamaged: false }), write },
  });
  onTestFinished(async () => {
    await work.close();
    await registry.close();
    await replica.close();
  });
  const follow = (id: string | null) => {
    shared.handOver(0, slot);
    work.follow(toHandedOver(slot, id));
  };
  const oldestMs = () => counts.oldestMs;
  return {
    work,
    shared,
    slot,
    records,
    follow,
    oldestMs,
    count: () => counts.of({ name: 'a', url: replica.url }),
  };
}

describe('responses in the background', () => {
  test('those beyond the bound count until the limit is over', async () => {
    const { follow, count, records, shared, slot } = await open({ limitMs: 500 });
    for (let i = 0; i < MAX_FOLLOWED_RESPONSES; i++) follow(`resp_${i}`);
    expect(count()).toEqual({ running: MAX_FOLLOWED_RESPONSES, unknown: 0 });
    for (let i = 0; i < 3; i++) follow(`resp_further${i}`);
    expect(count()).toEqual({ running: MAX_FOLLOWED_RESPONSES, unknown: 3 });
    expect(shared.handedOverOf(slot)).toBe(0);
    expect(records.map(({ background_end }) => background_end)).toEqual(Array(3).fill('not_followed'));
    await expect.poll(() => count().unknown).not.toBe(3);
  });

  test('of which no id is known count as not known', async () => {
    const { follow, count, records } = await open();
    follow(null);
    expect(count()).toEqual({ running: 0, unknown: 1 });
    expect(records).toMatchObject([{ background_end: 'not_followed', e2e_ms: 5 }]);
  });

  test('that a dead worker counted and did not hand over count as not known', async () => {
    const { work, shared, slot, count } = await open();
    shared.handOver(0, slot);
    shared.handOver(0, slot);
    shared.clearWorker(0);
    expect(shared.handedOverOf(slot)).toBe(2);
    work.workerEnded(0);
    expect(shared.handedOverOf(slot)).toBe(0);
    expect(count()).toEqual({ running: 0, unknown: 2 });
  });

  test('leave no record before the file has them no more: after a kill they would leave another one', async () => {
    const writes = new EventLog<{ readonly text: string; readonly end: () => void }>();
    const { follow, count, records, oldestMs } = await open({
      limitMs: 0,
      write: (text) => new Promise((end) => writes.push({ text, end })),
    });
    follow('resp_1');
    const first = await writes.next();
    expect(first.text).toContain('resp_1');
    await expect.poll(() => count().running).toBe(0);
    first.end();
    const second = await writes.next();
    expect(second.text).not.toContain('resp_1');
    expect(records).toEqual([]);
    expect(oldestMs()).toBeGreaterThan(0);
    second.end();
    await expect.poll(() => records).toMatchObject([{ background_end: 'over_limit' }]);
    expect(oldestMs()).toBe(0);
  });

  test('leave their records at a shutdown that cannot store them, and only then', async () => {
    for (const isFull of [false, true]) {
      const texts: string[] = [];
      const { work, follow, records } = await open({
        async write(text) {
          if (isFull) throw new Error('no space left');
          texts.push(text);
        },
      });
      follow('resp_1');
      await work.close();
      expect(records.map(({ background_end }) => background_end)).toEqual(isFull ? ['not_followed'] : []);
      expect(texts.at(-1)?.includes('resp_1') ?? false).toBe(!isFull);
    }
  });
});
