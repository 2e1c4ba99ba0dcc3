import { describe, expect, test } from 'vitest';
import { type Evidence, type FailedRequest, toExcuse } from '../soak/attribution.ts';
import { slopeOf } from '../soak/figures.ts';
import type { Disturbance, Journal } from '../soak/journal.ts';
import { type Run, toReport } from '../soak/report.ts';
import type { Sample } from '../soak/world/gateways.ts';

const FAILED: FailedRequest = {
  requestId: 'id',
  hasRecord: true,
  kind: 'chat',
  reason: 'status 502',
  isCut: false,
  startedMs: 1_000,
  endedMs: 1_100,
  connectedMs: 500,
};

function toEvidence(disturbances: readonly Partial<Disturbance>[], replica?: string): Evidence {
  const all = disturbances.map((each) => ({ kind: 'ended', replica: null, fromMs: 0, toMs: 0, ...each }));
  const between: Journal['between'] = (fromMs, toMs) =>
    (all as Disturbance[]).filter((each) => each.toMs >= fromMs && each.fromMs <= toMs);
  return { journal: { between }, cutIds: new Set(['cut']), replicaOf: () => replica };
}

describe('a request that failed in the soak', () => {
  const ended = { kind: 'ended', replica: 'r0', fromMs: 1_050, toMs: 1_060 } as const;

  test('is excused if it was open on a replica that ended, as that replica or the record says', () => {
    expect(toExcuse({ ...FAILED, requestId: 'cut' }, toEvidence([]))).toBe('a replica ended under them');
    expect(toExcuse(FAILED, toEvidence([ended], 'r0'))).toBe('a replica ended under them');
  });

  test('is not excused by a replica that ended elsewhere, at another time, or in order', () => {
    expect(toExcuse(FAILED, toEvidence([ended], 'r1'))).toBeNull();
    expect(toExcuse(FAILED, toEvidence([ended]))).toBeNull();
    expect(toExcuse(FAILED, toEvidence([{ ...ended, fromMs: 1_101, toMs: 1_110 }], 'r0'))).toBeNull();
    expect(toExcuse(FAILED, toEvidence([{ ...ended, kind: 'absent' }], 'r0'))).toBeNull();
  });

  test('is excused by a killed worker only if its connection broke and was as old as the worker', () => {
    const evidence = toEvidence([{ kind: 'worker', fromMs: 900, toMs: 1_050 }]);
    const cut = { ...FAILED, requestId: null, isCut: true, reason: 'ECONNRESET' };
    expect(toExcuse(cut, evidence)).toBe('their worker was killed');
    expect(toExcuse(FAILED, evidence)).toBeNull();
    expect(toExcuse({ ...cut, connectedMs: 1_051 }, evidence)).toBeNull();
    expect(toExcuse({ ...cut, startedMs: 8_000, endedMs: 8_001 }, evidence)).toBeNull();
  });
});

describe('the slope of a figure', () => {
  test('is found although a tenth of the points lie far away', () => {
    const points = Array.from({ length: 50 }, (_, hour) => ({
      hour,
      value: hour % 10 === 0 ? 1_000 : 2 * hour + (hour % 3),
    }));
    const { low, estimate, high } = slopeOf(points);
    expect(estimate).toBeCloseTo(2, 1);
    expect(low).toBeLessThanOrEqual(estimate);
    expect(high).toBeGreaterThanOrEqual(estimate);
  });

  test('has an interval with both signs if there is only noise', () => {
    const values = [5, 1, 4, 2, 3, 5, 1, 4, 2, 3, 5, 1, 4, 2, 3, 5, 1, 4, 2, 3];
    const { low, high } = slopeOf(values.map((value, hour) => ({ hour, value })));
    expect(low).toBeLessThan(0);
    expect(high).toBeGreaterThan(0);
  });
});

/** An hour in which nothing is wrong. */
function toRun(change: Partial<Run> = {}, growthMb = 0): Run {
  const samples: Sample[] = Array.from({ length: 600 }, (_, at) => ({
    atS: at * 6,
    rssMb: 250 + (at % 20),
    externalMb: 20,
    fds: 40 + (at % 7),
    resources: 10,
    heapMb: 50 + (at % 10) + (growthMb * at) / 600,
  }));
  return {
    durationS: 3_600,
    perSecond: 1,
    faults: new Map([['a fault', 3]]),
    problems: [],
    windows: [],
    gateways: [{ name: 'first', workers: 2, samples, fdsAtStart: 30, fdsAtEnd: 31 }],
    traffic: {
      counts: {
        sent: 3_600,
        succeeded: 3_599,
        aborted: 0,
        failed: 1,
        limited: 0,
        slowlyRead: 0,
        found: 0,
        gone: 0,
      },
      failures: [{ ...FAILED, requestId: 'cut' }],
      requestIds: ['a', 'b', 'cut'],
    },
    evidence: toEvidence([]),
    arrivedIds: new Set(['a', 'cut']),
    unansweredRecords: 2,
    countedAsLost: 1,
    ledger: { instances: 1, records: 3_599, declaredLost: 1, doubled: 2, problems: [] },
    ...change,
  };
}

describe('the report of a soak', () => {
  test('has no problem if all that is lost or failed is explained', () => {
    const { text, problems } = toReport(toRun());
    expect(problems).toEqual([]);
    expect(text).toContain('1 failed (1 because a replica ended under them)');
    expect(text).toContain('3 requests must have a record: 2 arrived, 1 did not, 1 are counted as lost.');
  });

  test('says that the rate was not reached', () => {
    expect(toReport(toRun({ perSecond: 300 })).text).toContain(
      '300 were asked for, and the machine was too slow',
    );
    expect(toReport(toRun()).text).not.toContain('too slow');
  });

  test('names a heap that grows', () => {
    expect(toReport(toRun({}, 40)).problems).toEqual([
      expect.stringContaining('heaps in use (MB) of the first gateway grew'),
    ]);
  });

  test('names requests that failed without need, and what else went wrong', () => {
    const { traffic } = toRun();
    const failures = [FAILED, { ...FAILED, requestId: 'other' }];
    expect(toReport(toRun({ traffic: { ...traffic, failures } })).problems).toEqual([
      '2 requests failed without need (chat: status 502)',
    ]);
    expect(toReport(toRun({ problems: ['a fault went wrong'] })).problems).toEqual(['a fault went wrong']);
  });

  test('names records that are missing, doubled or declared lost without a reason', () => {
    const ledger = {
      ...toRun().ledger,
      declaredLost: 0,
      doubled: 3,
      problems: ['missing 5-7 of instance x'],
    };
    expect(toReport(toRun({ arrivedIds: new Set(['a']), ledger })).problems).toEqual([
      'gateway verify: missing 5-7 of instance x',
      '2 records are missing, 1 are counted as lost',
      '0 records are declared lost, 1 are counted as lost',
      '3 records came twice, 2 were in calls without an answer',
    ]);
  });

  test('names a p99 that doubles beside that of a direct request, and no p99 that a slow machine explains', () => {
    const toWindows = (slower: number) =>
      Array.from({ length: 24 }, (_, at) => {
        const machineMs = 20 + 10 * at;
        const values = (factor: number) =>
          Array.from({ length: 200 }, (_, index) => (index + machineMs) * factor);
        return { endS: 150 * (at + 1), throughGateway: values(2 + slower * at), direct: values(1) };
      });
    expect(toReport(toRun({ windows: toWindows(0) })).problems).toEqual([]);
    expect(toReport(toRun({ windows: toWindows(0.3) })).problems).toEqual([
      expect.stringContaining('p99 to that of a direct request grew'),
    ]);
  });
});
