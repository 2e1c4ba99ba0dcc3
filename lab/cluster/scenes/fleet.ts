import { isTrue } from '../kubernetes/pod.ts';
import { ensure, type Scene, toSeconds } from '../scene.ts';
import { NAMESPACE } from '../stage.ts';
import { toValues } from '../values.ts';

const RATE = 40;

const pair: Scene = {
  id: 'two-gateways',
  promise:
    'Two gateways share their drains: the hook, called at one of them, waits for both. No request fails while a StatefulSet restarts.',
  isSlow: true,
  async play(stage) {
    await stage.install(toValues({ gateways: 2 }), 2);
    await stage.startEngines({ kind: 'StatefulSet', name: 'vllm', replicas: 3, hasHooks: true });
    const hooksBefore = stage.kubelet.hooks.items.length;
    const { requests } = await stage.underLoad(RATE, async () => {
      await stage.plane.kubectl('-n', NAMESPACE, 'rollout', 'restart', 'statefulset/vllm');
      await stage.plane.kubectl('-n', NAMESPACE, 'rollout', 'status', 'statefulset/vllm', '--timeout=5m');
      await stage.untilEngines('vllm', 3);
    });
    const hooks = stage.kubelet.hooks.items.slice(hooksBefore).filter(({ kind }) => kind === 'preStop');
    const told = hooks.map(({ output }) => output);
    // Also of a pod that the gateway has removed already: the other one may still serve it.
    const isSafe = (output: string) =>
      output.includes('"safe_to_stop":true') && output.includes('"unconfirmed":[]');
    ensure(told.length === 3 && told.every(isSafe), `preStop: ${told.join('; ')}`);
    return `3 pods: ${requests} requests through both, none failed; 3 hooks told that no gateway has anything left`;
  },
};

const update: Scene = {
  id: 'gateways-updated',
  promise:
    'helm upgrade with another configuration replaces both gateways, one after the other, and no request fails.',
  isSlow: true,
  async play(stage) {
    const before = stage.gateways.map(({ pod }) => pod.metadata.uid);
    const startedMs = performance.now();
    const { requests } = await stage.underLoad(RATE, async () => {
      await stage.install(toValues({ gateways: 2, ramp: '2s' }), 2);
      await stage.until('both gateways are new', async () => {
        const pods = await stage.pods('app.kubernetes.io/name=spangate');
        const areNew = pods.every(({ metadata }) => !before.includes(metadata.uid));
        return pods.length === 2 && areNew && pods.every((pod) => isTrue(pod, 'Ready'));
      });
    });
    return `${toSeconds(performance.now() - startedMs)}: ${requests} requests, none failed`;
  },
};

/** Two gateways. */
export const FLEET_SCENES: readonly Scene[] = [pair, update];
