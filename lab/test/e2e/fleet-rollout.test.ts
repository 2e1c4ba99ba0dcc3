import { expect, test } from 'vitest';
import { rollThroughOutage } from '../../fleet/roll-through-outage.ts';

/** Redis is killed when the first of them restarts, and holds a foreign field when the second does. */
const ROLLED = ['vllm-1', 'vllm-2'];

test('replicas are restarted behind two gateways during a Redis outage, and no gateway reports safe_to_stop wrongly', async () => {
  const { requests, saidSafe, ...report } = await rollThroughOutage({
    rolled: ROLLED,
    requestsPerSecond: 50,
    outageMs: 8_000,
  });
  expect(report).toEqual({
    exitCode: 0,
    restarted: ROLLED,
    failures: [],
    falseAnswers: [],
    reachedWhileDrained: 0,
    cut: 0,
  });
  expect(requests).toBeGreaterThan(1_000);
  expect(saidSafe).toBeGreaterThan(30);
});
