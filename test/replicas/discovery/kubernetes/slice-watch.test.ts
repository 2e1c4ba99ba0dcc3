import { expect, test } from 'vitest';
import { ApiError, type ApiFailureCode } from '../../../../src/replicas/discovery/kubernetes/api-call.ts';
import type { SliceApi } from '../../../../src/replicas/discovery/kubernetes/slice-api.ts';
import { SliceWatch } from '../../../../src/replicas/discovery/kubernetes/slice-watch.ts';

/** Runs a watch whose calls end in turn as they are told. Returns what it did: calls, failures that it told, waits. */
async function play(
  ends: readonly ('list' | 'watch' | ApiFailureCode)[],
): Promise<readonly (string | number)[]> {
  const seen: (string | number)[] = [];
  let turn = 0;
  const next = (call: string) => {
    seen.push(call);
    const end = ends[turn++];
    if (turn >= ends.length) watch.stop();
    if (end !== undefined && end !== 'list' && end !== 'watch') throw new ApiError(end);
  };
  let ms = 0;
  const api: SliceApi = {
    async list() {
      next('list');
      return { slices: [], resourceVersion: `${turn}` };
    },
    // biome-ignore lint/correctness/useYield: no change comes
    async *watch(resourceVersion) {
      next(`watch from ${resourceVersion}`);
      ms += 60_000;
    },
  };
  const watch = new SliceWatch({
    api,
    onSlices: () => undefined,
    onSuccess: () => undefined,
    random: () => 1,
    onFailure: ({ code }) => seen.push(code),
    clock: {
      nowMs: () => ms,
      async sleep(forMs) {
        if (forMs > 0) seen.push(forMs);
      },
    },
  });
  await watch.run();
  return seen;
}

test('failures are told but the first cut, and waited for longer and longer', async () => {
  expect(await play(['list', 'cut', 'unreachable', 'unreachable', 'watch'])).toEqual([
    ...['list', 'watch from 1', 'watch from 1', 'unreachable', 500],
    ...['watch from 1', 'unreachable', 1_000, 'watch from 1'],
  ]);
});

test('a position that is gone is no failure, however often the API server was away before: it is listed at once', async () => {
  expect(await play(['list', 'cut', 'unreachable', 'unreachable', 'gone', 'list', 'watch'])).toEqual([
    ...['list', 'watch from 1', 'watch from 1', 'unreachable', 500],
    ...['watch from 1', 'unreachable', 1_000, 'watch from 1', 'list', 'watch from 6'],
  ]);
});

test('an API server to which its own list is gone is not asked without a pause', async () => {
  expect(await play(['list', 'gone', 'list', 'gone', 'list', 'gone', 'list', 'watch'])).toEqual([
    ...['list', 'watch from 1', 'list', 'watch from 3', 'gone', 500],
    ...['list', 'watch from 5', 'gone', 1_000, 'list', 'watch from 7'],
  ]);
});
