import { expect, test } from 'vitest';
import { parseConfig } from '#config';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createPodCheck } from '../../../../../../src/replicas/control/discovery/kubernetes/gate/pod-check.ts';

test('a check ends with its signal, and not with a deadline', async () => {
  await using pod = await startFakeReplica();
  const stopped = new AbortController();
  pod.answerProbes(() => stopped.abort());
  const text = JSON.stringify({ replicas: [{ name: 'vllm-0', url: pod.url }] });
  const [config] = parseConfig(text, { path: 'gateway.yaml', env: {} }).replicas;
  if (config === undefined) throw new Error('a replica');
  const check = createPodCheck({
    connectMs: 2_000,
    probeHealth: async () => ({ kind: 'answer', status: 200, text: '' }),
  });
  const problem = await check(config, stopped.signal);
  expect(problem).not.toBeNull();
  expect(problem).not.toBe('no answer in time');
});
