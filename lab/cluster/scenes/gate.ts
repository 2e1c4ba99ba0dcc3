import { isTrue } from '../kubernetes/pod.ts';
import { ensure, type Scene, toSeconds } from '../scene.ts';
import { NAMESPACE, type Stage } from '../stage.ts';

const RATE = 40;
const LOADING_MS = 6_000;

/** How many pods of `chat` are ready, and the revision of their templates. */
async function readyPods(stage: Stage) {
  const pods = await stage.pods('app.kubernetes.io/name=chat');
  return pods.filter((pod) => isTrue(pod, 'Ready') && pod.metadata.deletionTimestamp === undefined);
}

const gate: Scene = {
  id: 'readiness-gate',
  promise:
    'A rolling update of a Deployment waits for each new pod until it has answered the gateway with its models; one that never does holds it back for good. No request fails.',
  async play(stage) {
    const engines = { kind: 'Deployment', name: 'chat', replicas: 3, hasGate: true } as const;
    await stage.startEngines(engines);
    await stage.endEngines('StatefulSet', 'vllm');
    const startedMs = performance.now();
    const good = await stage.underLoad(RATE, async () => {
      await stage.startEngines({ ...engines, settings: { loadingMs: LOADING_MS } }, false);
      await stage.plane.kubectl('-n', NAMESPACE, 'rollout', 'status', 'deployment/chat', '--timeout=5m');
      await stage.untilEngines('chat', 3);
    });
    const tookMs = performance.now() - startedMs;
    ensure(tookMs > 3 * LOADING_MS, `the update took ${toSeconds(tookMs)} only: it did not wait`);
    const before = (await readyPods(stage)).map(({ metadata }) => metadata.uid);
    const bad = await stage.underLoad(RATE, async () => {
      await stage.startEngines({ ...engines, settings: { models: ['another'] } }, false);
      await stage.until('a pod waits at the gate', async () => {
        const { readiness_gate: state } = await stage.source('chat');
        return state?.waiting === 1;
      });
      const status = ['rollout', 'status', 'deployment/chat', '--timeout=8s'];
      const isDone = await stage.plane.kubectl('-n', NAMESPACE, ...status).then(
        () => true,
        () => false,
      );
      ensure(!isDone, 'the update with pods of another model went on');
    });
    const after = (await readyPods(stage)).map(({ metadata }) => metadata.uid);
    ensure(
      after.length === 3 && before.every((uid) => after.includes(uid)),
      'a pod of the old version is gone',
    );
    await stage.startEngines(engines);
    return `3 pods that load for 6 s: ${toSeconds(tookMs)}, ${good.requests} requests; pods of another model: held back, ${bad.requests} requests; none failed`;
  },
};

/** The readiness gate. */
export const GATE_SCENES: readonly Scene[] = [gate];
