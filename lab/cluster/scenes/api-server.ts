import { createSign } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensure, type Scene, toSeconds } from '../scene.ts';
import { NAMESPACE, type Stage } from '../stage.ts';

const RATE = 40;
const SLICES = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`;
const ROLE = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/roles/spangate`;
/** A watch ends after 60 s at the latest, and only then the API server looks at rights and tokens again. */
const WATCH_MS = 90_000;

/** The engines of these scenes: those that the scene before has left, or new ones. */
const begin = async (stage: Stage) =>
  await stage.startEngines({ kind: 'Deployment', name: 'chat', replicas: 3, hasGate: true });

const scaleTo = async (stage: Stage, count: number) => {
  await stage.plane.kubectl('-n', NAMESPACE, 'scale', 'deployment', 'chat', `--replicas=${count}`);
};

const loss: Scene = {
  id: 'api-server-lost',
  promise:
    'While the API server is away, requests go on and a condition says so; when it is back, the gateway learns what has changed.',
  async play(stage) {
    await begin(stage);
    let shownMs = 0;
    let backMs = 0;
    const { requests } = await stage.underLoad(RATE, async () => {
      await stage.plane.stopApiServer();
      shownMs = await stage.until('the condition is shown', async () => {
        return (await stage.conditions('kubernetes_failing')).length > 0;
      });
      await stage.plane.startApiServer();
      backMs = await stage.until('the condition is gone', async () => {
        return (await stage.conditions('kubernetes_failing')).length === 0;
      });
      await scaleTo(stage, 4);
      await stage.untilEngines('chat', 4);
    });
    await scaleTo(stage, 3);
    await stage.untilEngines('chat', 3);
    return `condition after ${toSeconds(shownMs)}, gone ${toSeconds(backMs)} after the API server answered; ${requests} requests, none failed`;
  },
};

const gone: Scene = {
  id: 'watch-410',
  promise: 'A watch whose position the API server has forgotten (410) is followed by a new list.',
  isSlow: true,
  async play(stage) {
    await begin(stage);
    const { gateway, plane } = stage;
    const position = (await plane.api.get<{ metadata: { resourceVersion: string } }>(SLICES)).metadata
      .resourceVersion;
    await gateway.link('down');
    await scaleTo(stage, 5);
    await stage.until('5 pods are ready', async () => {
      const answer = await plane.kubectl(
        ...['-n', NAMESPACE, 'get', 'deployment', 'chat', '-o', 'jsonpath={.status.updatedReplicas}'],
      );
      return answer === '5';
    });
    await plane.stopApiServer();
    await plane.startApiServer();
    await plane.compact();
    const watched = plane.api.watch<{ readonly code?: number }>(
      `${SLICES}?watch=true&resourceVersion=${position}&timeoutSeconds=5`,
      AbortSignal.timeout(20_000),
    );
    let code: number | undefined;
    for await (const event of watched) {
      if (event.type === 'ERROR') code = event.object.code;
      break;
    }
    await gateway.link('up');
    const knownMs = await stage.until('the gateway knows 5 pods', async () => {
      return (await stage.replicaNames(gateway, 'chat')).length === 5;
    });
    await stage.untilEngines('chat', 5);
    await scaleTo(stage, 3);
    await stage.untilEngines('chat', 3);
    return `the old position is answered with ${code ?? 'no error'}; the gateway knows the pods ${toSeconds(knownMs)} after its network is back`;
  },
};

const rights: Scene = {
  id: 'rights-taken-away',
  promise:
    'Without its rights the gateway serves what it knows, and a condition names the missing rule; with them it goes on by itself.',
  isSlow: true,
  async play(stage) {
    await begin(stage);
    const role = await stage.plane.api.get<{ rules: readonly { resources: readonly string[] }[] }>(ROLE);
    let shown = '';
    let shownMs = 0;
    let goneMs = 0;
    const { requests } = await stage.underLoad(RATE, async () => {
      await stage.plane.api.patch(ROLE, { rules: [] });
      shownMs = await stage.until('the condition is shown', async () => {
        [shown = ''] = await stage.conditions('kubernetes_failing');
        return shown !== '';
      });
      await stage.plane.api.patch(ROLE, { rules: role.rules });
      goneMs = await stage.until('the condition is gone', async () => {
        return (await stage.conditions('kubernetes_failing')).length === 0;
      });
    });
    ensure(shown.includes('endpointslices'), `the condition does not name the rule: ${shown}`);
    return `"${shown}" after ${toSeconds(shownMs)}, gone ${toSeconds(goneMs)} after they were given back; ${requests} requests, none failed`;
  },
};

const tokens: Scene = {
  id: 'token-rotation',
  promise:
    'A token that the kubelet replaces is used from the next call on; one that has expired shows a condition until there is another.',
  isSlow: true,
  async play(stage) {
    await begin(stage);
    const { name } = stage.gateway.pod.metadata;
    const [folder = ''] = stage.kubelet.projectionFoldersOf(name);
    const read = () => readFile(join(folder, 'token'), 'utf8');
    const first = await read();
    await stage.kubelet.renewProjections(name);
    const second = await read();
    ensure(first !== second, 'the token is the same');
    await writeFile(join(folder, '..data', 'token'), await expire(second, stage.plane.signingKeyPath, 5));
    await sleep(5_000);
    const shownMs = await stage.until('the condition is shown', async () => {
      return (await stage.conditions('kubernetes_failing')).length > 0;
    });
    const [shown = ''] = await stage.conditions('kubernetes_failing');
    await stage.kubelet.renewProjections(name);
    const goneMs = await stage.until(
      'the condition is gone',
      async () => (await stage.conditions('kubernetes_failing')).length === 0,
      WATCH_MS,
    );
    await scaleTo(stage, 4);
    await stage.untilEngines('chat', 4);
    await scaleTo(stage, 3);
    await stage.untilEngines('chat', 3);
    return `"${shown}" ${toSeconds(shownMs)} after it expired, gone ${toSeconds(goneMs)} after the file was replaced`;
  },
};

/** The same token with an end in so many seconds, signed with the key of the cluster. */
async function expire(token: string, keyPath: string, seconds: number): Promise<string> {
  const [head = '', payload = ''] = token.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
  const changed = { ...claims, exp: Math.floor(Date.now() / 1_000) + seconds };
  const text = `${head}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}`;
  const signature = createSign('RSA-SHA256')
    .update(text)
    .sign(await readFile(keyPath, 'utf8'));
  return `${text}.${signature.toString('base64url')}`;
}

/** What the API server may do to a gateway. */
export const API_SCENES: readonly Scene[] = [loss, gone, rights, tokens];
