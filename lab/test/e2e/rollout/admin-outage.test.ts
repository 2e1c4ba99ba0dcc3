import { expect, test } from 'vitest';
import { rollDuringAdminOutages } from '../../../rollout/roll-in-hard-cases.ts';

test('under load, gateway rollout rolls replicas although the admin API is away when each of them is to be undrained', async () => {
  const rolled = ['vllm-0', 'vllm-1'];
  const report = await rollDuringAdminOutages({ requestsPerPhase: 20, rolled });
  expect(report).toMatchObject({
    exitCode: 0,
    failures: [],
    reachedWhileDrained: 0,
    cut: 0,
    restarted: rolled,
  });
});
