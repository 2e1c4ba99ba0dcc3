import { expect, test } from 'vitest';
import { rollReplicas } from '../../../rollout/roll-replicas.ts';

const ROLLED = ['vllm-0', 'vllm-1'];

test('under 200 mixed requests a second, gateway rollout rolls two of four replicas behind a gateway of one worker, and nobody notices', async () => {
  const { requests, records, ...report } = await rollReplicas(1, { rolled: ROLLED, requestsPerPhase: 20 });
  expect(report).toMatchObject({ exitCode: 0, restarted: ROLLED, failures: [] });
  expect(report).toMatchObject({ reachedWhileDrained: 0, cut: 0, missing: 0, unknown: 0 });
  expect(records).toBe(requests);
});
