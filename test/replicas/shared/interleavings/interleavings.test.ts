import { expect, test } from 'vitest';
import { checkInterleavings } from '#testkit/interleaving/interleavings.ts';
import {
  BEGIN_AND_END,
  GPU_LEASES,
  LAST_PLACE,
  LAST_WAIT,
  ONE_RETRY,
  originOf,
  responsesIn,
  stateIn,
  TWO_WRITERS,
  WRITER_AND_READER,
} from './programs.ts';

const PROGRAMS = new URL('./programs.ts', import.meta.url).href;
const SLOT = 0;

const sumOf = (results: readonly (readonly number[])[]) =>
  results.flat().reduce((sum, each) => sum + each, 0);

test('of two requests that want the last place of a replica, exactly one gets it', async () => {
  await checkInterleavings(PROGRAMS, LAST_PLACE, ({ memory, results }) => {
    expect(sumOf(results)).toBe(1);
    expect(stateIn(memory).inflightOf(SLOT)).toBe(1);
    expect(stateIn(memory).heldOf(SLOT)).toBe(1);
  });
});

test.each([LAST_PLACE, BEGIN_AND_END])(
  '$name: a worker that dies at any step holds nothing afterwards, and no place is given twice',
  async (program) => {
    await checkInterleavings(
      PROGRAMS,
      program,
      ({ memory, results, killed }) => {
        const state = stateIn(memory);
        if (killed !== null) state.clearWorker(killed);
        const held = killed === null ? sumOf(results) : sumOf(results.slice(1));
        expect(state.heldOf(SLOT)).toBe(held);
        // The count that the limit is checked with may stay one too high, never too low.
        expect(state.inflightOf(SLOT) - held).toBeOneOf(killed === null ? [0] : [0, 1]);
      },
      { kills: 0 },
    );
  },
);

test('of two requests that want the last place in the wait queue, exactly one gets a ticket', async () => {
  await checkInterleavings(PROGRAMS, LAST_WAIT, ({ memory, results }) => {
    expect(results.flat().toSorted()).toEqual([0, 1]);
    expect(stateIn(memory).waiting.count).toBe(1);
  });
});

test('of two requests in one cool-down, exactly one tries a replica that fails', async () => {
  await checkInterleavings(PROGRAMS, ONE_RETRY, ({ results }) => expect(sumOf(results)).toBe(1));
});

test('the parts of two leases are the GPU time of their replica, whichever worker dies at whichever step', async () => {
  const check = ({
    memory,
    killed,
  }: {
    readonly memory: SharedArrayBuffer;
    readonly killed: number | null;
  }) => {
    const { gpuTimes } = stateIn(memory, 100);
    // What a lease gets of the time from 0 on; the worker that died gives nothing back.
    if (killed !== null) gpuTimes.clearWorker(killed);
    const before = gpuTimes.timeOf(SLOT);
    expect(before.ms.busy).toBeGreaterThanOrEqual(0);
    expect(before.ms.busy + before.ms.idle).toBe(100);
    expect(before.cost).toEqual({ ...before.ms, hourPrice: 3_600_000 });
    const later = stateIn(memory, 200).gpuTimes;
    const survivors = [0, 1].filter((worker) => worker !== killed);
    // Each began at some share; a lease that begins and ends now shares with those that are held.
    const began = later.begin(0, SLOT);
    const part = stateIn(memory, 300).gpuTimes.end(0, SLOT, {
      began,
      isRecorded: true,
    });
    expect(part.ms).toBeCloseTo(100 / (survivors.length + 1), 6);
    expect(part.cost).toBeCloseTo(part.ms, 6);
  };
  await checkInterleavings(PROGRAMS, GPU_LEASES, check, { preemptions: 1 });
  await checkInterleavings(PROGRAMS, GPU_LEASES, check, { kills: 0, preemptions: 0 });
});

/** What a reader may get of a version. */
function wholeOf(version: number): readonly number[] {
  const memory = responsesIn(new SharedArrayBuffer(16 * 1024 ** 2));
  memory.note('resp_1', originOf(version));
  const found = memory.find('resp_1');
  if (found === null) throw new Error('not noted');
  return [found.seed, ...found.model, ...found.calledAs, ...found.owner];
}

test('a response that is noted anew is read as it was, as it is, or not at all, never in parts of both', async () => {
  const whole = [1, 2].map((version) => wholeOf(version).join());
  const check = ({ results }: { readonly results: readonly (readonly number[])[] }) => {
    const [, read = []] = results;
    if (read.length > 0) expect(read.join()).toBeOneOf(whole);
  };
  await checkInterleavings(PROGRAMS, WRITER_AND_READER, check, { preemptions: 1 });
  await checkInterleavings(PROGRAMS, WRITER_AND_READER, check, { kills: 0, preemptions: 0 });
});

test('of one response that two threads note, one version is known in the end, and both are news', async () => {
  const whole = [1, 2].map((version) => wholeOf(version).join());
  await checkInterleavings(
    PROGRAMS,
    TWO_WRITERS,
    ({ memory }) => {
      const responses = responsesIn(memory);
      const found = responses.find('resp_1');
      expect(found).not.toBeNull();
      if (found === null) return;
      expect([found.seed, ...found.model, ...found.calledAs, ...found.owner].join()).toBeOneOf(whole);
      expect(
        responses
          .takeNews()
          .map(({ seed }) => seed)
          .toSorted(),
      ).toEqual([7_001, 7_002]);
    },
    { preemptions: 1 },
  );
});
