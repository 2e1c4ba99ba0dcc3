import { expect, test } from 'vitest';
import { rollReplicas } from '../../../rollout/roll-replicas.ts';

const ROLLED = ['vllm-0', 'vllm-1', 'vllm-2', 'vllm-3'];

test('under 200 mixed requests a second, gateway rollout rolls four replicas behind a gateway of two workers, and nobody notices', async () => {
  const { requests, records, ...report } = await rollReplicas(2, { rolled: ROLLED, requestsPerPhase: 20 });
  expect(report).toMatchObject({ exitCode: 0, restarted: ROLLED, failures: [] });
  expect(report).toMatchObject({ reachedWhileDrained: 0, cut: 0, missing: 0, unknown: 0 });
  expect(records).toBe(requests);
});
