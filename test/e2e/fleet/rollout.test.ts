import { expect, test } from 'vitest';
import { rollThroughOutage } from '../../../lab/fleet/roll-through-outage.ts';

test('four replicas are restarted behind two gateways during a Redis outage, and no gateway reports safe_to_stop wrongly', async () => {
  const { requests, saidSafe, ...report } = await rollThroughOutage();
  expect(report).toEqual({
    exitCode: 0,
    restarted: ['vllm-0', 'vllm-1', 'vllm-2', 'vllm-3'],
    failures: [],
    falseAnswers: [],
    reachedWhileDrained: 0,
    cut: 0,
  });
  expect(requests).toBeGreaterThan(1_000);
  expect(saidSafe).toBeGreaterThan(100);
});
