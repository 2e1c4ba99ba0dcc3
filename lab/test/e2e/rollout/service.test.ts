import { expect, test } from 'vitest';
import { rollService } from '../../../rollout/roll-in-hard-cases.ts';

test('under load, gateway rollout rolls replicas behind an SRV name, which a replica leaves while it restarts', async () => {
  const report = await rollService({ requestsPerPhase: 20 });
  expect(report).toMatchObject({ exitCode: 0, failures: [], reachedWhileDrained: 0, cut: 0 });
  expect(report.restarted).toEqual([11, 12, 13].map((last) => `vllm-127.0.0.${last}`));
});
