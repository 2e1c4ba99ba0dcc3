import { describe, expect, test, vi } from 'vitest';
import { allocateSharedState, SharedState } from '#replicas/shared';
import type { Silence } from '#replicas/silence';
import { DeadlineClock } from '#wire';
import type { UpstreamConnections } from '#wire/upstream';
import { SilenceSampler } from '../../../src/replicas/data/silence-sampler.ts';

type SeenStream = Parameters<NonNullable<Parameters<UpstreamConnections['observeSilence']>[0]>>[0];
type Upstream = Pick<UpstreamConnections, 'observeSilence' | 'endedSentMs'>;

const WORKER = 2;
const KIND = 7;
const SHORT = 100;

/** A sampler of two replicas, whose thread began 100 s after the clock that all threads share. */
function createSampler() {
  let nowMs = 1_000_000;
  const shared = new SharedState(allocateSharedState(3), () => nowMs);
  const streams: SeenStream[] = [];
  let endedSentMs: number | null = null;
  const former = new Map<number, Upstream[]>();
  const seen = new Map<number, Silence>([
    [3, { heardMs: 899_940, waitingSinceMs: 899_950 }],
    [4, { heardMs: null, waitingSinceMs: null }],
  ]);
  const time = { nowMs: () => nowMs - 100_000, every: () => () => undefined, afterReads: () => undefined };
  const sampler = new SilenceSampler({
    shared,
    worker: WORKER,
    clock: new DeadlineClock(1, time),
    replicas: () =>
      [...seen].map(([slot, silence]) => ({
        slot,
        upstreams: [
          {
            get endedSentMs() {
              return endedSentMs;
            },
            observeSilence(onStream) {
              if (slot === 3) for (const stream of streams) onStream?.(stream);
              return silence;
            },
          },
          ...(former.get(slot) ?? []),
        ],
      })),
  });
  return {
    sampler,
    shared,
    seen,
    former,
    pass: (ms: number) => (nowMs += ms),
    /** Runs a stream on slot 3 that has been silent for so long; null: it is not. */
    run(
      silentMs: number | null,
      { isAnswering = true, size = SHORT as number | null, sentAgoMs = 60_000, holds = [] as number[] } = {},
    ) {
      const silentSinceMs = silentMs === null ? null : nowMs - 100_000 - silentMs;
      const stream = {
        get kind() {
          return KIND;
        },
        size,
        holds,
      };
      const sentMs = nowMs - 100_000 - sentAgoMs;
      streams.push({ stream, silentSinceMs, sentMs, isAnswering });
      return stream;
    },
    /** A stream has ended that was sent so long ago. */
    end(agoMs: number) {
      endedSentMs = nowMs - 100_000 - agoMs;
    },
    /** The replica sent something so long ago. */
    hear: (agoMs: number) => shared.silences.note(0, 3, { heardMs: nowMs - agoMs, waitingSinceMs: null }),
    streamsOf(slot = 3) {
      sampler.sample();
      return shared.silences.streamsOf(slot);
    },
  };
}

test('what a thread has seen is noted in the time of all threads', () => {
  const { sampler, shared } = createSampler();
  sampler.sample();
  expect(shared.silences.silenceOf(3)).toEqual({ heardMs: 999_940, waitingSinceMs: 999_950 });
  expect(shared.silences.silenceOf(4)).toEqual({ heardMs: null, waitingSinceMs: null });
  expect(shared.silences.oldestSampleMs).toBe(1_000_000);
});

describe('a stream is silent', () => {
  test('after the time that is usual for its model, and after half a minute while that is not known', () => {
    const { run, shared, streamsOf } = createSampler();
    run(29_000);
    run(null);
    expect(streamsOf()).toMatchObject({ running: 2, silent: 0, oldestMs: null });
    shared.silenceLimits.setGap(KIND, 10_000);
    run(9_999);
    run(10_000);
    expect(streamsOf()).toMatchObject({ running: 4, silent: 2, oldestMs: 971_000 });
    expect(streamsOf(4)).toMatchObject({ running: 0, silent: 0 });
  });

  test('before its first byte by the length of its prompt, and after a minute while nothing is known of like ones', () => {
    const { run, shared, streamsOf } = createSampler();
    shared.silenceLimits.setFirstByte(KIND, 1, 6_000);
    run(6_000, { isAnswering: false });
    expect(streamsOf().silent).toBe(1);
    run(59_999, { isAnswering: false, size: 5_000 });
    run(59_999, { isAnswering: false, size: null });
    expect(streamsOf().silent).toBe(1);
    run(60_000, { isAnswering: false, size: 5_000 });
    run(60_000, { isAnswering: false, size: null });
    expect(streamsOf().silent).toBe(3);
  });

  test('never within five seconds: what it streams is not even asked for', () => {
    const { run, streamsOf } = createSampler();
    const stream = run(4_999);
    const asked = vi.spyOn(stream, 'kind', 'get');
    expect(streamsOf()).toMatchObject({ running: 1, silent: 0 });
    expect(asked).not.toHaveBeenCalled();
  });
});

test('silent streams on connections of before a change count as those on the present ones', () => {
  const { run, former, shared, streamsOf } = createSampler();
  shared.silenceLimits.setGap(KIND, 5_000);
  run(6_000);
  const stream = { kind: KIND, size: SHORT, holds: [9] };
  const seen = { stream, silentSinceMs: 860_000, sentMs: 850_000, isAnswering: true };
  former.set(3, [
    {
      endedSentMs: null,
      observeSilence(onStream) {
        onStream?.(seen);
        return { heardMs: 860_000, waitingSinceMs: 860_000 };
      },
    },
  ]);
  expect(streamsOf()).toMatchObject({ running: 2, silent: 2, oldestMs: 960_000 });
  expect(shared.silences.silenceOf(3)).toEqual({ heardMs: 999_940, waitingSinceMs: 960_000 });
  expect(shared.silentHolders.read()).toEqual([{ row: 9, slot: 3, count: 1 }]);
});

test('the limits in which silent streams hold places are told, until the streams go on or their worker ends', () => {
  const { run, sampler, shared } = createSampler();
  shared.silenceLimits.setGap(KIND, 5_000);
  run(6_000, { holds: [70_000, 262_143] });
  run(6_000, { holds: [70_000] });
  run(6_000);
  run(4_000, { holds: [70_000] });
  sampler.sample();
  expect(shared.silentHolders.read()).toEqual([
    { row: 70_000, slot: 3, count: 2 },
    { row: 262_143, slot: 3, count: 1 },
  ]);
  shared.clearWorker(0);
  expect(shared.silentHolders.read()).toHaveLength(2);
  shared.clearWorker(WORKER);
  expect(shared.silentHolders.read()).toEqual([]);
});

test('of more limits than there is room for, those with most silent streams are told', () => {
  const { run, sampler, shared } = createSampler();
  shared.silenceLimits.setGap(KIND, 5_000);
  for (let row = 0; row < 600; row++) run(6_000, { holds: row < 100 ? [row] : [row, row] });
  sampler.sample();
  const told = shared.silentHolders.read();
  expect(told).toHaveLength(512);
  expect(told.filter(({ count }) => count === 2)).toHaveLength(500);
});

describe('a silent stream counts against its replica', () => {
  test('when that has sent something to others two seconds after it', () => {
    const { run, hear, seen, shared, streamsOf } = createSampler();
    shared.silenceLimits.setGap(KIND, 5_000);
    seen.set(3, { heardMs: null, waitingSinceMs: 892_000 });
    run(8_000);
    hear(6_001);
    expect(streamsOf()).toMatchObject({ silent: 1, stuck: 0 });
    hear(6_000);
    expect(streamsOf()).toMatchObject({ silent: 1, stuck: 1, newestMs: 997_000 });
  });

  test('not while the whole replica is silent, however long', () => {
    const { run, seen, shared, streamsOf, pass } = createSampler();
    shared.silenceLimits.setGap(KIND, 5_000);
    seen.set(3, { heardMs: 892_000, waitingSinceMs: 892_000 });
    run(8_000);
    expect(streamsOf()).toMatchObject({ silent: 1, stuck: 0 });
    pass(600_000);
    expect(streamsOf()).toMatchObject({ silent: 1, stuck: 0 });
  });

  test('before its first byte, when a later one has begun or ended: engines begin with what came first', () => {
    const { run, hear, end, shared, streamsOf } = createSampler();
    shared.silenceLimits.setFirstByte(KIND, 1, 5_000);
    hear(0);
    run(8_000, { isAnswering: false, sentAgoMs: 8_000 });
    run(0, { sentAgoMs: 9_000 });
    end(8_000);
    expect(streamsOf()).toMatchObject({ silent: 1, stuck: 0 });
    end(7_999);
    expect(streamsOf()).toMatchObject({ silent: 1, stuck: 1 });
    end(20_000);
    run(0, { sentAgoMs: 7_000 });
    expect(streamsOf()).toMatchObject({ running: 3, silent: 1, stuck: 1 });
  });

  test('not for what began before the time from which it is judged', () => {
    const { run, shared, streamsOf } = createSampler();
    shared.silenceLimits.setGap(KIND, 5_000);
    run(8_000);
    run(6_000);
    streamsOf();
    shared.silences.judgeFrom(3, 993_000);
    expect(streamsOf()).toMatchObject({ silent: 2, stuck: 1, newestMs: 999_000 });
  });
});

test('a sampler samples each second, or more often if it is told', async () => {
  vi.useFakeTimers();
  try {
    const { sampler } = createSampler();
    const samples = vi.spyOn(sampler, 'sample');
    const pass = async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      return samples.mock.calls.length;
    };
    sampler.configure(null);
    expect(await pass(999)).toBe(0);
    expect(await pass(2)).toBe(1);
    sampler.configure(400);
    expect(await pass(99)).toBe(1);
    expect(await pass(2)).toBe(2);
    sampler.configure(400);
    expect(await pass(100)).toBe(3);
    sampler.configure(null);
    expect(await pass(999)).toBe(3);
    expect(await pass(2)).toBe(4);
    sampler.stop();
    expect(await pass(10_000)).toBe(4);
  } finally {
    vi.useRealTimers();
  }
});

test('a sampler keeps no process alive', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const { sampler } = createSampler();
  sampler.configure(400);
  expect(timers()).toBe(before);
  sampler.stop();
});
