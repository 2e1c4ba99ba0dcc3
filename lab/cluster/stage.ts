import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { readSnippets } from '#testkit/docs-snippets.ts';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { Load, type LoadResult } from '#testkit/load/load.ts';
import { type Child, startChild } from '#testkit/programs/child.ts';
import { ROOT } from '#testkit/programs/results.ts';
import type { KubernetesList } from './kubernetes/api.ts';
import { type ControlPlane, findHelm, HOST_IP, startControlPlane } from './kubernetes/control-plane.ts';
import {
  createEngineImage,
  ENGINE,
  type EngineImage,
  type EngineSettings,
} from './kubernetes/engine-image.ts';
import {
  createGatewayImage,
  type GatewayContainer,
  type GatewayImage,
  prepareNetwork,
} from './kubernetes/gateway-image.ts';
import { writeHosts } from './kubernetes/hosts.ts';
import { Kubelet } from './kubernetes/kubelet.ts';
import { isTrue, type Pod } from './kubernetes/pod.ts';
import { type ServiceProxy, startServiceProxy } from './kubernetes/service-proxy.ts';

const run = promisify(execFile);

/** Where everything is. */
export const NAMESPACE = 'llm';
/** The pods of a namespace in the API. */
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const WAIT_MS = 120_000;
const ADMIN_TOKEN = randomBytes(16).toString('hex');
const READ_TOKEN = randomBytes(16).toString('hex');
/** The token of pods that drain themselves. */
const DRAIN_TOKEN = randomBytes(16).toString('hex');

/** A source of the gateway, in GET /admin/replicas. */
export interface Source {
  readonly name: string;
  readonly state: string;
  readonly error_code: string | null;
  readonly readiness_gate: {
    readonly confirmed: number;
    readonly waiting: number;
    readonly state: string;
  } | null;
}

/** GET /admin/replicas. */
export interface Replicas {
  readonly replicas: readonly {
    readonly name: string;
    readonly inflight: number;
    readonly drained: boolean;
  }[];
  readonly sources: readonly Source[];
}

/** The engines of a scene. */
export interface Engines {
  readonly kind: 'StatefulSet' | 'Deployment';
  /** Of the workload and its Service. */
  readonly name: string;
  readonly replicas: number;
  readonly settings?: EngineSettings;
  readonly hasGate?: boolean;
  /** With the hooks of docs/kubernetes.md. */
  readonly hasHooks?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A cluster with its network, nodes, kubelets and what stands beside it. */
export class Stage implements AsyncDisposable {
  readonly plane: ControlPlane;
  readonly kubelet: Kubelet;
  readonly engines: EngineImage;
  readonly collector: FakeCollector;
  readonly folder: string;
  /** What tools of others have logged of themselves, by their names. */
  readonly quotes = new Map<string, readonly string[]>();
  readonly #image: GatewayImage;
  readonly #proxy: ServiceProxy;
  readonly #opened: AsyncDisposableStack;

  private constructor(
    parts: Pick<Stage, 'plane' | 'kubelet' | 'engines' | 'collector' | 'folder'> & {
      readonly image: GatewayImage;
      readonly proxy: ServiceProxy;
      readonly opened: AsyncDisposableStack;
    },
  ) {
    this.plane = parts.plane;
    this.kubelet = parts.kubelet;
    this.engines = parts.engines;
    this.collector = parts.collector;
    this.folder = parts.folder;
    this.#image = parts.image;
    this.#proxy = parts.proxy;
    this.#opened = parts.opened;
  }

  /** Starts a cluster in the network namespace of this process. */
  static async open(folder: string, ...version: readonly string[]): Promise<Stage> {
    await using opened = new AsyncDisposableStack();
    await prepareNetwork();
    const plane = opened.use(await startControlPlane(join(folder, 'plane'), ...version));
    const collector = opened.use(await startFakeCollector(4318, HOST_IP));
    const redis = ['--bind', HOST_IP, '--port', '6379', '--save', '', '--protected-mode', 'no'];
    opened.use(startChild({ file: 'redis-server', args: redis, cwd: folder }));
    const image = createGatewayImage(join(folder, 'gateways'));
    const engines = createEngineImage();
    const hosts = [`${HOST_IP} kubernetes.default.svc otel-collector valkey`];
    const kubelet = opened.use(new Kubelet(plane.api, [image, engines], join(folder, 'pods'), hosts));
    const proxy = opened.use(startServiceProxy(plane.api, NAMESPACE, 'spangate'));
    const stage = new Stage({
      plane,
      kubelet,
      engines,
      collector,
      folder,
      image,
      proxy,
      opened: opened.move(),
    });
    await stage.#furnish();
    return stage;
  }

  /** Nodes, the namespace, volumes, and the Secrets of docs/install.md and docs/kubernetes.md. */
  async #furnish(): Promise<void> {
    const { api } = this.plane;
    const capacity = { cpu: '1k', memory: '1Ti', pods: '10k', 'nvidia.com/gpu': '10k' };
    for (const name of ['node-1', 'node-2']) {
      await api.create('/api/v1/nodes', {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels: { 'kubernetes.io/hostname': name } },
        status: { capacity, allocatable: capacity },
      });
      const path = join(this.folder, `volume-${name}`);
      await api.create('/api/v1/persistentvolumes', {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: `state-${name}` },
        spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path } },
      });
    }
    const warn = { 'pod-security.kubernetes.io/warn': 'restricted' };
    await api.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE, labels: warn },
    });
    await this.#createSecret('spangate', {
      'admin-token': ADMIN_TOKEN,
      'read-token': READ_TOKEN,
      'hash-salt': randomBytes(16).toString('hex'),
      'drain-token': `vllm-*: ${DRAIN_TOKEN}`,
    });
    await this.#createSecret('spangate-drain', { token: DRAIN_TOKEN });
  }

  async #createSecret(name: string, stringData: Readonly<Record<string, string>>): Promise<void> {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData };
    await this.plane.api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, secret);
  }

  /** Runs helm; returns what it printed, with its warnings. */
  async helm(...args: readonly string[]): Promise<string> {
    const env = { ...process.env, HELM_CACHE_HOME: this.folder, HELM_CONFIG_HOME: this.folder };
    const options = { env: { ...env, KUBECONFIG: this.plane.kubeconfig }, maxBuffer: 64 << 20 };
    const { stdout, stderr } = await run(await findHelm(), [...args, '--namespace', NAMESPACE], options);
    return stdout + stderr;
  }

  /** Installs the chart, or upgrades it, and waits until its gateways are ready. Returns what helm printed. */
  async install(values: object, count = 1): Promise<string> {
    const path = join(this.folder, 'values.json');
    await writeFile(path, JSON.stringify(values));
    const examples = ['--values', join(ROOT, 'deploy/helm/examples/pods.yaml'), '--values', path];
    const chart = join(ROOT, 'deploy/helm/spangate');
    const printed = await this.helm('upgrade', '--install', 'spangate', chart, ...examples);
    // Pods that are ready may be those of before.
    await this.plane.kubectl('-n', NAMESPACE, 'rollout', 'status', 'statefulset/spangate', '--timeout=5m');
    await this.until(`${count} gateways are ready`, async () => {
      const pods = await this.pods('app.kubernetes.io/name=spangate');
      return pods.length === count && pods.every((pod) => isTrue(pod, 'Ready'));
    });
    return printed;
  }

  /** The gateways that run, in the order of their names. */
  get gateways(): readonly GatewayContainer[] {
    return [...this.#image.running.values()].sort((a, b) =>
      a.pod.metadata.name < b.pod.metadata.name ? -1 : 1,
    );
  }

  /** The first gateway. */
  get gateway(): GatewayContainer {
    const [first] = this.gateways;
    if (first === undefined) throw new Error('there is no gateway');
    return first;
  }

  /** Makes engines, and waits until they are ready, unless it is told not to. */
  async startEngines(engines: Engines, isAwaited = true): Promise<void> {
    const text = await readFile(join(ROOT, 'deploy/kubernetes/vllm.yaml'), 'utf8');
    const [service, workload] = text.split(/^---$/m).map((document) => parse(document));
    const { name, replicas, kind, settings = {}, hasGate = false, hasHooks = false, labels = {} } = engines;
    const selector = { 'app.kubernetes.io/name': name };
    service.metadata.name = name;
    service.spec.selector = selector;
    Object.assign(workload, { kind });
    workload.metadata.name = name;
    const { template } = workload.spec;
    template.metadata = {
      labels: { ...selector, ...labels },
      annotations: { [ENGINE]: JSON.stringify(settings) },
    };
    const [container] = template.spec.containers;
    container.readinessProbe.periodSeconds = 1;
    delete container.startupProbe; // the played kubelet asks for readiness alone
    if (hasGate) template.spec.readinessGates = [{ conditionType: 'spangate.dev/answers' }];
    if (hasHooks) {
      const { spec } = parse(
        (await readSnippets(join(ROOT, 'docs/kubernetes.md'), 'yaml')).get('A pod that stops') ?? '',
      );
      template.spec.terminationGracePeriodSeconds = spec.terminationGracePeriodSeconds;
      const [{ env, lifecycle }] = spec.containers;
      Object.assign(container, { env, lifecycle });
    }
    const ofSet = {
      serviceName: name,
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'RollingUpdate' },
    };
    const rolling = { maxUnavailable: 0, maxSurge: 1 };
    const ofDeployment = { strategy: { type: 'RollingUpdate', rollingUpdate: rolling } };
    const own = kind === 'StatefulSet' ? ofSet : ofDeployment;
    workload.spec = { replicas, selector: { matchLabels: selector }, template, ...own };
    await this.apply(service, workload);
    if (isAwaited) await this.untilEngines(name, replicas);
  }

  /** Waits until so many pods of a workload are ready, and the gateways know them and no others. */
  async untilEngines(name: string, count: number): Promise<void> {
    await this.until(`${count} pods of ${name} are ready, and replicas`, async () => {
      const pods = await this.pods(`app.kubernetes.io/name=${name}`);
      const live = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      const names = live.map(({ metadata }) => metadata.name);
      const ready = live.filter((pod) => isTrue(pod, 'Ready')).length;
      const known = await Promise.all(this.gateways.map((gateway) => this.replicaNames(gateway, name)));
      const areKnown = known.every(
        (list) => list.length === count && names.every((each) => list.includes(each)),
      );
      if (live.length === count && pods.length === count && ready === count && areKnown) return true;
      throw new Error(
        `pods ${names.join(' ')}, ${ready} ready; known ${known.map((list) => list.join(' ')).join(' and ')}`,
      );
    });
  }

  /** Removes a workload and its Service, and waits until their pods are gone. */
  async endEngines(kind: Engines['kind'], name: string): Promise<void> {
    await this.plane.kubectl('-n', NAMESPACE, 'delete', kind, name, '--wait=false', '--ignore-not-found');
    await this.plane.kubectl('-n', NAMESPACE, 'delete', 'service', name, '--ignore-not-found');
    const selector = `app.kubernetes.io/name=${name}`;
    await this.until(`${name} is gone`, async () => (await this.pods(selector)).length === 0);
  }

  /** Starts a program that knows the Services by name, as a pod does. Its output goes to a file. */
  async startBeside(
    name: string,
    command: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly child: Child; readonly logPath: string }> {
    const folder = join(this.folder, name);
    await mkdir(folder, { recursive: true });
    const hosts = [`${HOST_IP} prometheus spangate-webhook`];
    const hostsPath = await writeHosts(this.plane.api, NAMESPACE, { folder, hosts });
    const script = 'mount --bind "$1" /etc/hosts && shift && exec "$@"';
    const args = ['--mount', 'sh', '-c', script, 'beside', hostsPath, ...command];
    const logPath = join(folder, 'log');
    return { child: this.#opened.use(startChild({ file: 'unshare', args, env }, { logPath })), logPath };
  }

  /** The token that only reads. */
  get readToken(): string {
    return READ_TOKEN;
  }

  /** Creates or changes objects. */
  async apply(...objects: readonly object[]): Promise<void> {
    const path = join(this.folder, 'apply.json');
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    await writeFile(path, JSON.stringify(list));
    await this.plane.kubectl('-n', NAMESPACE, 'apply', '-f', path);
  }

  /** The pods with these labels. */
  async pods(labelSelector: string): Promise<readonly Pod[]> {
    const path = `${PODS}?${new URLSearchParams({ labelSelector })}`;
    return (await this.plane.api.get<KubernetesList<Pod>>(path)).items;
  }

  /** Calls the admin API of a gateway, as an admin. */
  async admin<T>(gateway: Pick<GatewayContainer, 'adminUrl'>, path: string): Promise<T> {
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
    const response = await fetch(gateway.adminUrl + path, { headers });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** The names of the replicas of a workload that a gateway has. */
  async replicaNames(gateway: GatewayContainer, name: string): Promise<readonly string[]> {
    const { replicas } = await this.admin<Replicas>(gateway, '/admin/replicas');
    return replicas.map((replica) => replica.name).filter((each) => each.startsWith(`${name}-`));
  }

  /** A source of a gateway, by the name of its entry. */
  async source(name: string, gateway = this.gateway): Promise<Source> {
    const { sources } = await this.admin<Replicas>(gateway, '/admin/replicas');
    const source = sources.find((each) => each.name === name);
    if (source === undefined) throw new Error(`there is no source ${name}`);
    return source;
  }

  /** The sentences of the conditions that are on, of a kind. */
  async conditions(id: string, gateway = this.gateway): Promise<readonly string[]> {
    const answer = await this.admin<{
      readonly conditions: readonly { readonly id: string; readonly sentence: string }[];
    }>(gateway, '/admin/conditions');
    return answer.conditions.filter((condition) => condition.id === id).map(({ sentence }) => sentence);
  }

  /** Does something under load by the Service of the gateways. Rejects if a request fails. */
  async underLoad(perSecond: number, act: () => Promise<unknown>): Promise<LoadResult> {
    // A gateway whose network was away in the scene before may not be ready again.
    await this.until(
      'the Service of the gateways answers',
      async () => (await fetch(this.#proxy.url)).status > 0,
    );
    const load = new Load(this.#proxy.url, perSecond);
    let result: LoadResult | null = null;
    try {
      await load.untilEnded(perSecond);
      await act();
      await load.untilEnded(perSecond);
    } finally {
      result = await load.stop();
    }
    const { failures, requests } = result;
    if (failures.length > 0)
      throw new Error(`${failures.length} of ${requests} requests failed: ${failures[0]}`);
    return result;
  }

  /** Waits until something holds. Rejects with what it was, if it takes too long. */
  async until(
    what: string,
    holds: () => Promise<boolean>,
    timeoutMs = WAIT_MS,
    everyMs = 100,
  ): Promise<number> {
    const startedMs = performance.now();
    let last: unknown = null;
    while (performance.now() - startedMs < timeoutMs) {
      const isSo = await holds().catch((error: unknown) => {
        last = error;
        return false;
      });
      if (isSo) return performance.now() - startedMs;
      await sleep(everyMs);
    }
    throw new Error(`not within ${timeoutMs / 1_000} s: ${what}`, { cause: last });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}
