import { describe, expect, test } from 'vitest';
import { ExportCounters } from '#otel/queue';
import { type Gauges, LiveFigures } from '../../../../src/admin/dashboard/traffic/live-figures.ts';

const gauges = (stats: Partial<Gauges['stats']> = {}, inflight = 0): Gauges => ({
  stats: { ...new ExportCounters().values, queued: 0, ...stats },
  inflight,
  gpuCounts: new Map(),
  eventLoops: [],
});

const at = (nowMs: number) => ({ nowMs, time: new Date(nowMs).toISOString() });

describe('the history', () => {
  test('has the last sample of each complete slice, with its traffic', () => {
    const live = new LiveFigures(gauges(), at(0));
    live.add({ replica: 'a', status: 200, e2e_ms: 5 }, 1_000);
    live.sample(gauges({ queued: 3 }, 1), at(2_000));
    live.sample(gauges({ queued: 7 }, 2), at(4_500));
    live.sample(gauges({ queued: 1 }, 9), at(6_000));
    expect(live.figures(6_500).history).toMatchObject([
      { agoMs: 1_500, queued: 7, inflight: 2, requests: 1, requestsPerSecond: 0.2 },
    ]);
    expect(live.figures(11_000).history).toMatchObject([{ queued: 7 }, { queued: 1, inflight: 9 }]);
  });

  test('is bounded', () => {
    const live = new LiveFigures(gauges(), at(0));
    for (let nowMs = 0; nowMs < 3_600_000; nowMs += 1_000) live.sample(gauges(), at(nowMs));
    expect(live.figures(3_600_000).history).toHaveLength(61);
  });
});

test('the figures say how busy each worker was', () => {
  const times = (activeMs: number) => [{ worker: 1, activeMs, idleMs: 0 }];
  const live = new LiveFigures({ ...gauges(), eventLoops: times(0) }, at(0));
  live.sample({ ...gauges(), eventLoops: times(1_000) }, at(1_000));
  expect(live.figures(1_000).eventLoops).toEqual([{ worker: 1, share: 1 }]);
});

describe('the state of the collector', () => {
  const collectorAfter = (...samples: readonly Partial<Gauges['stats']>[]) => {
    const live = new LiveFigures(gauges(), at(0));
    for (const [index, stats] of samples.entries()) live.sample(gauges(stats), at((index + 1) * 1_000));
    return live.figures(60_000).collector;
  };

  test('is idle until the first export', () => {
    expect(collectorAfter({}, {})).toEqual({ kind: 'idle', since: at(0).time, failedCalls: 0 });
  });

  test('is taking from the first accepted record', () => {
    expect(collectorAfter({}, { exported: 3 }, { exported: 9 }, { exported: 9 })).toEqual({
      kind: 'taking',
      since: at(2_000).time,
      failedCalls: 0,
    });
  });

  test('is failing from the first failed call, and counts failed calls', () => {
    const samples = [{ exported: 3 }, { exported: 3, failedCalls: 1 }, { exported: 3, failedCalls: 4 }];
    expect(collectorAfter(...samples)).toEqual({ kind: 'failing', since: at(2_000).time, failedCalls: 4 });
  });

  test('is taking again from the first record accepted after an outage', () => {
    const samples = [{ failedCalls: 2 }, { failedCalls: 3, exported: 5 }];
    expect(collectorAfter(...samples)).toEqual({ kind: 'taking', since: at(2_000).time, failedCalls: 1 });
  });

  test('is refusing if the collector rejects records', () => {
    expect(collectorAfter({ failedCalls: 1, rejected: 12 })).toMatchObject({ kind: 'refusing' });
  });
});
