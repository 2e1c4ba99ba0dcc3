import { expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { toReplicaConfig } from '#testkit/pool.ts';
import { createPodCheck } from '../../../../../src/replicas/discovery/kubernetes/gate/pod-check.ts';

test('a check ends with its signal, and not with a deadline', async () => {
  await using pod = await startFakeReplica();
  const stopped = new AbortController();
  pod.answerProbes(() => stopped.abort());
  const check = createPodCheck({
    connectMs: () => 2_000,
    probeHealth: async () => ({ kind: 'answer', status: 200, text: '' }),
  });
  const problem = await check({ ...toReplicaConfig('vllm-0'), url: pod.url }, stopped.signal);
  expect(problem).not.toBeNull();
  expect(problem).not.toBe('no answer in time');
});
