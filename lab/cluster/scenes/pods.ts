import { ensure, type Scene, toSeconds } from '../scene.ts';
import { NAMESPACE, type Stage } from '../stage.ts';
import { toValues } from '../values.ts';

const RATE = 40;

/** What `kubectl auth can-i --list` says of the gateway's service account, but what every account may. */
async function readRights(stage: Stage): Promise<readonly string[]> {
  const every = await listRights(stage, 'default');
  return (await listRights(stage, 'spangate')).filter((right) => !every.includes(right));
}

async function listRights({ plane }: Stage, name: string): Promise<readonly string[]> {
  const account = `system:serviceaccount:${NAMESPACE}:${name}`;
  const group = ['--as-group', 'system:serviceaccounts'];
  const list = ['auth', 'can-i', '--list', '--no-headers', '--as', account, ...group, '-n', NAMESPACE];
  const lines = (await plane.kubectl(...list)).trim().split('\n');
  return lines.map((line) => line.trim().replaceAll(/\s+/g, ' '));
}

const install: Scene = {
  id: 'install',
  promise:
    'The chart passes admission, with Pod Security `restricted`, and its Role grants what the docs say.',
  async play(stage) {
    const printed = await stage.install(toValues());
    ensure(!/violate/i.test(printed), `helm printed: ${printed}`);
    const rights = await readRights(stage);
    ensure(rights.length === 3, `the rights are ${rights.join('; ')}`);
    await stage.until(
      'the Service has a source that is ok',
      async () => (await stage.source('vllm')).state === 'ok',
    );
    return `rights: ${rights.map((right) => `\`${right}\``).join(', ')}`;
  },
};

const scaling: Scene = {
  id: 'scaling',
  promise: 'A StatefulSet grows and shrinks under load, and no request fails.',
  async play(stage) {
    await stage.startEngines({ kind: 'StatefulSet', name: 'vllm', replicas: 3, hasHooks: true });
    const scale = async (count: number) => {
      await stage.plane.kubectl('-n', NAMESPACE, 'scale', 'statefulset', 'vllm', `--replicas=${count}`);
      await stage.untilEngines('vllm', count);
    };
    const { requests } = await stage.underLoad(RATE, async () => {
      await scale(6);
      await scale(2);
      await scale(4);
    });
    return `3, 6, 2 and 4 pods: ${requests} requests, none failed`;
  },
};

const deletion: Scene = {
  id: 'deletion',
  promise: 'A pod that somebody deletes gets no new request, ends those that it has, and comes back.',
  async play(stage) {
    const ended = stage.engines.ended.length;
    const uidOf = async () =>
      (await stage.pods('statefulset.kubernetes.io/pod-name=vllm-1'))[0]?.metadata.uid;
    const before = await uidOf();
    const { requests } = await stage.underLoad(RATE, async () => {
      await stage.plane.kubectl('-n', NAMESPACE, 'delete', 'pod', 'vllm-1', '--wait=false');
      await stage.until('vllm-1 is another pod', async () => {
        const now = await uidOf();
        return now !== undefined && now !== before;
      });
      await stage.untilEngines('vllm', 4);
    });
    const cut = stage.engines.ended.slice(ended).reduce((sum, report) => sum + report.cut, 0);
    ensure(cut === 0, `${cut} requests were cut`);
    return `${requests} requests, none failed, none cut`;
  },
};

const restart: Scene = {
  id: 'rolling-restart',
  promise:
    "`kubectl rollout restart` of a StatefulSet fails no request; each pod's preStop hook, as the docs have it, is told `safe_to_stop`, or 404: nothing of the pod is left.",
  async play(stage) {
    const [endedBefore, hooksBefore] = [stage.engines.ended.length, stage.kubelet.hooks.items.length];
    const startedMs = performance.now();
    const { requests } = await stage.underLoad(RATE, async () => {
      await stage.plane.kubectl('-n', NAMESPACE, 'rollout', 'restart', 'statefulset/vllm');
      await stage.plane.kubectl('-n', NAMESPACE, 'rollout', 'status', 'statefulset/vllm', '--timeout=5m');
      await stage.untilEngines('vllm', 4);
    });
    const cut = stage.engines.ended.slice(endedBefore).reduce((sum, report) => sum + report.cut, 0);
    const hooks = stage.kubelet.hooks.items.slice(hooksBefore);
    const stops = hooks.filter(({ kind }) => kind === 'preStop');
    const safe = stops.filter(({ output }) => output.includes('"safe_to_stop":true'));
    const gone = stops.filter(({ output }) => output.includes('"replica_not_found"'));
    ensure(cut === 0, `${cut} requests were cut`);
    ensure(
      stops.length === 4 && safe.length + gone.length === 4,
      `preStop: ${stops.map(({ output }) => output).join('; ')}`,
    );
    const undrained = hooks.filter(({ kind, exitCode }) => kind === 'postStart' && exitCode === 0);
    ensure(undrained.length === 4, `postStart: ${hooks.map(({ output }) => output).join('; ')}`);
    return `4 pods in ${toSeconds(performance.now() - startedMs)}: ${requests} requests, none failed, none cut; of 4 hooks ${safe.length} told safe_to_stop, ${gone.length} 404`;
  },
};

/** Pods that come and go. */
export const POD_SCENES: readonly Scene[] = [install, scaling, deletion, restart];
