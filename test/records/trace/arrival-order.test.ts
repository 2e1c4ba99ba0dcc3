import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TracedRequest } from '../../../src/records/trace/traced-request.ts';
import { inArrivalOrder, mergeByEnd } from '../../../src/records/trace/write-trace.ts';
import { request } from './requests.ts';

async function* stream(items: readonly TracedRequest[]): AsyncGenerator<TracedRequest> {
  yield* items;
}

/** What comes out, and what was counted. */
async function order(items: readonly TracedRequest[], window: number) {
  const counts = { repeated: 0, late: 0 };
  const ordered = await Array.fromAsync(inArrivalOrder(stream(items), window, counts));
  return { ordered, ...counts };
}

const at = (atMs: number, id = `r${atMs}`) => request({ id, atMs });

describe('requests sorted by their ends', () => {
  test('are sorted by arrival, if none is further out of order than the window', async () => {
    const durations = fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(durations, async (all) => {
        const arrived = all.map((duration, index) =>
          request({ id: `r${index}`, atMs: index, endedAtMs: index + duration }),
        );
        const ended = arrived.toSorted((a, b) => a.endedAtMs - b.endedAtMs);
        expect(await order(ended, 21)).toEqual({ ordered: arrived, repeated: 0, late: 0 });
      }),
    );
  });

  test('never go back in time, and none is lost, however far out of order they are', async () => {
    const times = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(times, fc.integer({ min: 1, max: 5 }), async (all, window) => {
        const items = all.map((atMs, index) => at(atMs, `r${index}`));
        const { ordered } = await order(items, window);
        expect(ordered.map(({ id }) => id).sort()).toEqual(items.map(({ id }) => id).sort());
        const shown = ordered.map(({ atMs }) => atMs);
        expect(shown).toEqual(shown.toSorted((a, b) => a - b));
      }),
    );
  });

  test('are counted when they are moved', async () => {
    const { ordered, late } = await order([at(5), at(6), at(1), at(7)], 1);
    expect(late).toBe(1);
    expect(ordered.map(({ atMs }) => atMs)).toEqual([5, 5, 6, 7]);
  });

  test('are used once if a batch was delivered twice', async () => {
    const { ordered, repeated } = await order([at(1), at(2), at(1), at(2), at(3)], 10);
    expect(repeated).toBe(2);
    expect(ordered.map(({ atMs }) => atMs)).toEqual([1, 2, 3]);
  });
});

test('files of several gateways are merged by the end of their requests', async () => {
  const files = fc.array(fc.array(fc.integer({ min: 0, max: 100 })), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(files, async (all) => {
      const sorted = all.map((ends) =>
        ends.toSorted((a, b) => a - b).map((endedAtMs) => request({ endedAtMs })),
      );
      const merged = await Array.fromAsync(mergeByEnd(sorted.map(stream)));
      expect(merged.map(({ endedAtMs }) => endedAtMs)).toEqual(all.flat().toSorted((a, b) => a - b));
    }),
  );
});

test('a request that never ends, by a damaged record, is merged last, and hides no other', async () => {
  const endless = request({ id: 'endless', endedAtMs: Number.POSITIVE_INFINITY });
  const files = [
    [endless, request({ id: 'behind', endedAtMs: 2 })],
    [request({ id: 'other', endedAtMs: 1 })],
  ];
  const merged = await Array.fromAsync(mergeByEnd(files.map(stream)));
  expect(merged.map(({ id }) => id)).toEqual(['other', 'endless', 'behind']);
});
