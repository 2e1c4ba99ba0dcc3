import { afterEach, expect, test, vi } from 'vitest';
import { changeDrain, fetchOverview } from '../../../../../src/admin/dashboard/page/app/api.js';

/** The longest that a gateway takes: probes of the other replicas, and then a shared state that does not answer. */
const LONGEST_CHANGE_MS = 8_000 + 6_500;

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** How long the page waits for a call. */
async function patienceOf(call: () => Promise<unknown>): Promise<number> {
  const timeout = vi.spyOn(AbortSignal, 'timeout');
  vi.stubGlobal('fetch', async () => Response.json({}));
  await call();
  return timeout.mock.calls[0]?.[0] ?? 0;
}

test('a drain may take as long as the gateway probes other replicas and waits for the shared state', async () => {
  const drain = () => changeDrain('token', 'a', 'drain', { reason: '', ramp: '', unlessLast: true });
  expect(await patienceOf(drain)).toBeGreaterThan(LONGEST_CHANGE_MS);
});

test('a gateway that does not answer with data is lost sooner', async () => {
  expect(await patienceOf(() => fetchOverview('token', 0))).toBeLessThanOrEqual(10_000);
});
