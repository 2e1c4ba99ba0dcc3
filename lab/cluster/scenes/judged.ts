import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ROOT } from '#testkit/programs/results.ts';
import type { KubernetesObject } from '../kubernetes/api.ts';
import { findPrograms, HOST_IP } from '../kubernetes/control-plane.ts';
import { ensure, type Scene, toSeconds } from '../scene.ts';
import { NAMESPACE, type Stage } from '../stage.ts';

const RATE = 60;
const GOOD = { ttftMs: 20, gapMs: 4 };
/** Half as fast again: no request fails, so only the gateway can tell. */
const BAD = { ttftMs: 20, gapMs: 8 };
/** How long a controller may take for one version. */
const LONG_MS = 400_000;
const MAX_LINE_CHARS = 400;

/** A recipe for a workload of another name, as objects by kind. */
async function readRecipe(file: string, name: string): Promise<ReadonlyMap<string, KubernetesObject>> {
  const text = (await readFile(join(ROOT, 'deploy/recipes', file), 'utf8')).replaceAll(/\bvllm\b/g, name);
  const objects = parseAllDocuments(text).map((document) => document.toJS() as KubernetesObject);
  return new Map(objects.map((object) => [object.kind ?? '', object]));
}

/** The objects of these kinds. */
function pick(recipe: ReadonlyMap<string, KubernetesObject>, ...kinds: readonly string[]): readonly object[] {
  return kinds.flatMap((kind) => recipe.get(kind) ?? []);
}

/** Keeps what a controller has logged: its lines with these words. */
async function quote(stage: Stage, tool: string, logPath: string, pattern: RegExp): Promise<void> {
  const lines = (await readFile(logPath, 'utf8')).split('\n').filter((line) => pattern.test(line));
  const shown = lines.map((line) => line.slice(0, MAX_LINE_CHARS));
  stage.quotes.set(tool, shown);
  console.log(shown.join('\n'));
}

/** Defines the kinds of a controller, and applies objects of these kinds as soon as the API server knows them. */
async function defineKinds(stage: Stage, path: string, objects: readonly object[]): Promise<void> {
  await stage.plane.kubectl('apply', '--server-side', '-f', path);
  await stage.until('the kinds of the controller are known', async () => {
    await stage.apply(...objects);
    return true;
  });
}

const read = async (stage: Stage, kind: string, path: string) =>
  (await stage.plane.kubectl('-n', NAMESPACE, 'get', kind, '-o', `jsonpath=${path}`)).trim();

const engines = (name: string, settings: object, replicas: number) =>
  ({ kind: 'Deployment', name, replicas, settings }) as const;

const argo: Scene = {
  id: 'argo-rollouts',
  promise:
    'Argo Rollouts, with deploy/recipes/argo-rollouts.yaml, promotes a version as good as the old one, and aborts a slower one.',
  isSlow: true,
  part: 'rollouts-controller',
  async play(stage) {
    const programs = await findPrograms('rollouts-controller');
    const recipe = await readRecipe('argo-rollouts.yaml', 'vllm');
    await stage.startEngines(engines('vllm', GOOD, 4));
    await defineKinds(stage, join(programs, 'crds.yaml'), pick(recipe, 'AnalysisTemplate', 'Rollout'));
    const { logPath } = await stage.startBeside('argo', [
      ...[join(programs, 'rollouts-controller'), '--kubeconfig', stage.plane.kubeconfig],
      ...['--namespaced', '--namespace', NAMESPACE, '--leader-elect=false'],
      ...['--healthzPort', '8084'], // the Service of the gateway has 8080
    ]);
    const phase = () => read(stage, 'rollout/vllm', '{.status.phase}');
    const image = () => read(stage, 'rollout/vllm', '{.status.stableRS}');
    await stage.until('the first version is out', async () => (await phase()) === 'Healthy', LONG_MS);
    const first = await image();
    let goodMs = 0;
    let badMs = 0;
    const { requests } = await stage.underLoad(RATE, async () => {
      await stage.startEngines({ ...engines('vllm', GOOD, 0), labels: { version: 'v2' } }, false);
      goodMs = await stage.until(
        'the good version is promoted',
        async () => (await phase()) === 'Healthy' && (await image()) !== first,
        LONG_MS,
      );
      const second = await image();
      await stage.startEngines({ ...engines('vllm', BAD, 0), labels: { version: 'v3' } }, false);
      badMs = await stage.until(
        'the slow version is aborted',
        async () => (await phase()) === 'Degraded',
        LONG_MS,
      );
      ensure((await image()) === second, 'the slow version is stable');
    });
    await quote(
      ...([stage, 'Argo Rollouts', logPath] as const),
      /msg="(?:Metric Assessment Result|Rollout aborted|Rollout completed)/,
    );
    await stage.plane.kubectl('-n', NAMESPACE, 'delete', 'rollout', 'vllm');
    await stage.endEngines('Deployment', 'vllm');
    return `promoted after ${toSeconds(goodMs)}, aborted after ${toSeconds(badMs)}; ${requests} requests, none failed`;
  },
};

const flagger: Scene = {
  id: 'flagger',
  promise:
    'Flagger, with deploy/recipes/flagger.yaml, promotes a version as good as the old one, and rolls back a slower one.',
  isSlow: true,
  part: 'flagger',
  async play(stage) {
    const programs = await findPrograms('flagger');
    await startPrometheus(stage);
    const address = { GATEWAY_ADMIN: 'http://spangate-admin:9090', SVC_READ_TOKEN: stage.readToken };
    const webhook = join(ROOT, 'deploy/recipes/flagger-webhook.mjs');
    await stage.startBeside('webhook', [process.execPath, webhook], {
      ...address,
      LISTEN: HOST_IP,
      PORT: '80',
    });
    const recipe = await readRecipe('flagger.yaml', 'judged');
    await stage.startEngines(engines('judged', GOOD, 2), false);
    await stage.plane.kubectl('-n', NAMESPACE, 'delete', 'service', 'judged');
    await defineKinds(stage, join(programs, 'crds.yaml'), pick(recipe, 'MetricTemplate', 'Canary'));
    const { logPath } = await stage.startBeside('flagger', [
      ...[join(programs, 'flagger'), '-kubeconfig', stage.plane.kubeconfig, '-mesh-provider', 'kubernetes'],
      ...['-namespace', NAMESPACE, '-metrics-server', 'http://prometheus:9090', '-log-level', 'info'],
      ...['-port', '8088'],
    ]);
    const phase = () => read(stage, 'canary/judged', '{.status.phase}');
    await stage.until('the primary is there', async () => (await phase()) === 'Initialized', LONG_MS);
    await stage.until(
      'the gateway has the primary',
      async () => (await stage.replicaNames(stage.gateway, 'judged-primary')).length === 2,
    );
    let goodMs = 0;
    let badMs = 0;
    const { requests } = await stage.underLoad(RATE, async () => {
      const change = (settings: object, version: string) =>
        stage.plane.kubectl(
          ...['-n', NAMESPACE, 'patch', 'deployment', 'judged', '--type=merge', '-p'],
          JSON.stringify({
            spec: {
              template: {
                metadata: { annotations: { 'spangate.lab/engine': JSON.stringify(settings), version } },
              },
            },
          }),
        );
      /** Rolls out a version; how long it takes from the analysis on until the canary is in this phase. */
      const judge = async (settings: object, version: string, what: string, end: string): Promise<number> => {
        await change(settings, version);
        await stage.until('the analysis begins', async () => (await phase()) === 'Progressing', LONG_MS);
        return await stage.until(what, async () => (await phase()) === end, LONG_MS);
      };
      goodMs = await judge(GOOD, 'v2', 'the good version is promoted', 'Succeeded');
      badMs = await judge(BAD, 'v3', 'the slow version is rolled back', 'Failed');
    });
    await quote(
      ...([stage, 'Flagger', logPath] as const),
      /"msg":"[^"]*(?:advance|back|promotion|failed|completed)[^"]*","canary":"judged/i,
    );
    await stage.plane.kubectl('-n', NAMESPACE, 'delete', 'canary', 'judged');
    return `promoted after ${toSeconds(goodMs)}, rolled back after ${toSeconds(badMs)}; ${requests} requests, none failed`;
  },
};

/** A Prometheus that reads the metrics of the gateway with the token that only reads. */
async function startPrometheus(stage: Stage): Promise<void> {
  const path = join(stage.folder, 'prometheus.yml');
  const job = {
    job_name: 'spangate',
    scrape_interval: '2s',
    authorization: { credentials: stage.readToken },
    static_configs: [{ targets: ['spangate-admin:9090'] }],
  };
  await writeFile(path, JSON.stringify({ scrape_configs: [job] }));
  const storage = `--storage.tsdb.path=${join(stage.folder, 'prometheus')}`;
  await stage.startBeside('metrics', [
    ...['prometheus', `--config.file=${path}`, storage, `--web.listen-address=${HOST_IP}:9090`],
  ]);
}

/** Tools that ask the gateway for its verdict. */
export const JUDGED_SCENES: readonly Scene[] = [argo, flagger];
