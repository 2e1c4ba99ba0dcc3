import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EventLog } from '#testkit/event-log.ts';
import { type KubernetesApi, type KubernetesList, RefusedCall } from './api.ts';
import { writeHosts } from './hosts.ts';
import { type ContainerSpec, isTrue, type Pod, type Probe, toPodPath } from './pod.ts';
import { fillVolume, makeVolumes } from './volumes.ts';

const run = promisify(execFile);

/** What runs as the container of a pod. */
export interface Container {
  /** SIGTERM, and SIGKILL after `graceMs`; resolves when it has ended. */
  stop(graceMs: number): Promise<void>;
}

/** What a container finds around it. `volumes`: folders by the path where they are mounted. */
export interface Surroundings {
  readonly ip: string;
  readonly env: Readonly<Record<string, string>>;
  readonly volumes: ReadonlyMap<string, string>;
  /** `/etc/hosts`: the names of the cluster. */
  readonly hostsPath: string;
}

/** How the pods of one kind are played. */
export interface Image {
  readonly isOf: (container: ContainerSpec) => boolean;
  readonly nextIp: () => string;
  readonly start: (pod: Pod, surroundings: Surroundings) => Promise<Container>;
}

/** A hook that was carried out. */
export interface RanHook {
  readonly pod: string;
  readonly kind: 'preStop' | 'postStart';
  readonly command: readonly string[];
  readonly output: string;
  readonly exitCode: number;
}

/** A pod that runs here. */
interface Running {
  pod: Pod;
  readonly ip: string;
  container: Container | null;
  readonly folder: string;
  readonly volumes: ReadonlyMap<string, string>;
  readonly env: Readonly<Record<string, string>>;
  isAnswering: boolean;
  isStopping: boolean;
  told: string;
  /** Ends when what is being told has been told: of two writes at once the older one may arrive last. */
  telling: Promise<void>;
}

const FS_GROUP = 1000;
const RETRY_MS = 500;

/**
 * Plays the kubelets of all nodes: volumes and tokens, containers, hooks, probes, readiness, the end of pods. What it does
 * not play: images, resources, network policies, restarts of containers.
 */
export class Kubelet implements AsyncDisposable {
  readonly hooks = new EventLog<RanHook>();
  readonly #api: KubernetesApi;
  readonly #images: readonly Image[];
  readonly #folder: string;
  readonly #hosts: readonly string[];
  readonly #running = new Map<string, Running>();
  readonly #ended = new AbortController();
  readonly #watching: Promise<void>;

  /** `hosts`: lines for the names outside of the cluster. */
  constructor(api: KubernetesApi, images: readonly Image[], folder: string, hosts: readonly string[]) {
    this.#api = api;
    this.#images = images;
    this.#folder = folder;
    this.#hosts = hosts;
    this.#watching = this.#watch();
  }

  /** Replaces the files of the projected volumes of a pod, as a kubelet does when a token gets old. */
  async renewProjections(name: string): Promise<void> {
    for (const { path, volume, pod } of this.#projectionsOf(name))
      await fillVolume(this.#api, pod, volume, path);
  }

  /** The folders of the projected volumes of a pod. */
  projectionFoldersOf(name: string): readonly string[] {
    return this.#projectionsOf(name).map(({ path }) => path);
  }

  *#find(name: string): Generator<Running> {
    for (const running of this.#running.values()) if (running.pod.metadata.name === name) yield running;
  }

  #projectionsOf(name: string) {
    return [...this.#find(name)].flatMap(({ pod, volumes }) =>
      (pod.spec.volumes ?? []).flatMap((volume) => {
        const path = volumes.get(volume.name);
        return volume.projected === undefined || path === undefined ? [] : [{ pod, volume, path }];
      }),
    );
  }

  async #watch(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      try {
        const list = await this.#api.get<KubernetesList<Pod>>('/api/v1/pods');
        for (const pod of list.items) this.#see(pod);
        const { resourceVersion } = list.metadata;
        const path = `/api/v1/pods?watch=true&resourceVersion=${resourceVersion}`;
        for await (const { type, object } of this.#api.watch<Pod>(path, signal)) {
          if (type === 'ERROR') break;
          if (type !== 'DELETED') this.#see(object);
        }
      } catch {
        // The API server is away, or this ends.
      }
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  #see(pod: Pod): void {
    const { uid = '', deletionTimestamp } = pod.metadata;
    const running = this.#running.get(uid);
    if (running === undefined) {
      if (pod.spec.nodeName === undefined || pod.status.phase !== 'Pending') return;
      if (deletionTimestamp === undefined) void this.#begin(uid, pod).catch(this.#complain);
      else void this.#remove(pod).catch(this.#complain);
      return;
    }
    running.pod = pod;
    if (deletionTimestamp !== undefined && !running.isStopping) {
      running.isStopping = true;
      void this.#end(uid, running).catch(this.#complain);
    }
    void this.#tell(running).catch(this.#complain);
  }

  readonly #complain = (error: unknown) => {
    if (!this.#ended.signal.aborted)
      console.error('kubelet:', error instanceof Error ? error.message : error);
  };

  async #begin(uid: string, pod: Pod): Promise<void> {
    const [spec] = pod.spec.containers;
    const image = this.#images.find(({ isOf }) => isOf(spec));
    if (image === undefined) throw new Error(`nothing plays ${spec.image}`);
    const folder = join(this.#folder, uid);
    await mkdir(folder, { recursive: true });
    const where = { folder, claims: join(this.#folder, 'claims'), fsGroup: FS_GROUP };
    const ip = image.nextIp();
    const running: Running = {
      pod,
      ip,
      folder,
      container: null,
      isAnswering: false,
      isStopping: false,
      told: '',
      volumes: new Map(),
      env: {},
      telling: Promise.resolve(),
    };
    this.#running.set(uid, running);
    const { volumes, env, hostsPath } = await this.#persist(async () => ({
      volumes: await makeVolumes(this.#api, pod, where),
      env: await this.#readEnv(pod, spec),
      hostsPath: await this.#writeHosts(pod, folder),
    }));
    Object.assign(running, { volumes, env });
    const mounts = (spec.volumeMounts ?? []).flatMap(({ name, mountPath }) => {
      const path = volumes.get(name);
      return path === undefined ? [] : [[mountPath, path] as const];
    });
    await this.#tell(running);
    running.container = await image.start(pod, { ip, env, hostsPath, volumes: new Map(mounts) });
    await this.#runHook(running, 'postStart');
    const { readinessProbe } = spec;
    if (readinessProbe?.httpGet === undefined) {
      running.isAnswering = true;
      await this.#tell(running);
    } else void this.#probe(running, readinessProbe);
  }

  /** Does it again until it succeeds, as a kubelet that waits for what a pod refers to, or until this ends. */
  /** The host names that a pod sees, as a file; its path. */
  #writeHosts({ metadata }: Pod, folder: string): Promise<string> {
    return writeHosts(this.#api, metadata.namespace ?? 'default', { folder, hosts: this.#hosts });
  }

  async #persist<T>(act: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await act();
      } catch (error) {
        this.#complain(error);
        if (this.#ended.signal.aborted) throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  async #probe(running: Running, probe: Probe): Promise<void> {
    const [spec] = running.pod.spec.containers;
    const { path = '/', port = 80 } = probe.httpGet ?? {};
    const named = spec.ports?.find(({ name }) => name === port)?.containerPort ?? port;
    let failures = 0;
    while (!this.#ended.signal.aborted && this.#running.has(running.pod.metadata.uid ?? '')) {
      const signal = AbortSignal.timeout((probe.timeoutSeconds ?? 1) * 1_000);
      const isGood = await fetch(`http://${running.ip}:${named}${path}`, { signal }).then(
        async (response) => {
          await response.body?.cancel();
          return response.ok;
        },
        () => false,
      );
      failures = isGood ? 0 : failures + 1;
      if (isGood || failures >= (probe.failureThreshold ?? 3)) running.isAnswering = isGood;
      await this.#tell(running).catch(this.#complain);
      await sleep((probe.periodSeconds ?? 10) * 1_000, undefined, { ref: false });
    }
  }

  /** Writes the status after what is being written, if it has changed. */
  #tell(running: Running): Promise<void> {
    const told = running.telling.then(() => this.#write(running));
    running.telling = told.catch(() => undefined);
    return told;
  }

  async #write(running: Running): Promise<void> {
    const { pod, ip, isAnswering } = running;
    const [spec] = pod.spec.containers;
    const gates = pod.spec.readinessGates ?? [];
    const isReady = isAnswering && gates.every(({ conditionType }) => isTrue(pod, conditionType));
    const isStarted = running.container !== null;
    const told = JSON.stringify([isReady, isAnswering, isStarted]);
    if (told === running.told) return;
    running.told = told;
    const toStatus = (is: boolean) => (is ? 'True' : 'False');
    const now = new Date().toISOString();
    const condition = (type: string, is: boolean) => ({
      type,
      status: toStatus(is),
      lastTransitionTime: now,
    });
    const status = {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      startTime: now,
      conditions: [
        condition('Initialized', true),
        condition('ContainersReady', isAnswering),
        condition('Ready', isReady),
      ],
      containerStatuses: [
        {
          name: spec.name,
          image: spec.image,
          imageID: '',
          ready: isAnswering,
          restartCount: 0,
          started: isStarted,
          state: { running: { startedAt: now } },
        },
      ],
    };
    try {
      await this.#api.patch(
        `${toPodPath(pod)}/status`,
        { metadata: { uid: pod.metadata.uid }, status },
        'strategic',
      );
    } catch (error) {
      running.told = '';
      // It is gone, or the API server is away: then the list that follows says what is to be written.
      if (error instanceof RefusedCall && ![404, 409].includes(error.status)) throw error;
    }
  }

  async #end(uid: string, running: Running): Promise<void> {
    const { pod } = running;
    const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 30) * 1_000;
    const startedMs = performance.now();
    await this.#runHook(running, 'preStop');
    await running.container?.stop(Math.max(2_000, graceMs - (performance.now() - startedMs)));
    this.#running.delete(uid);
    await this.#remove(pod);
  }

  async #remove(pod: Pod): Promise<void> {
    const { uid } = pod.metadata;
    while (!this.#ended.signal.aborted) {
      try {
        return await this.#api.delete(toPodPath(pod), { gracePeriodSeconds: 0, preconditions: { uid } });
      } catch {
        await sleep(RETRY_MS); // the API server is away
      }
    }
  }

  async #runHook(running: Running, kind: RanHook['kind']): Promise<void> {
    const { pod, env } = running;
    const [spec] = pod.spec.containers;
    const command = spec.lifecycle?.[kind]?.exec?.command;
    if (command === undefined) return;
    const hostsPath = await this.#writeHosts(pod, running.folder);
    const script = 'mount --bind "$1" /etc/hosts && shift && exec "$@"';
    const args = ['--mount', 'sh', '-c', script, 'hook', hostsPath, ...command];
    const options = { env: { PATH: process.env.PATH, ...env }, timeout: 700_000 };
    const { stdout, code } = await run('unshare', args, options).then(
      (done) => ({ stdout: done.stdout, code: 0 }),
      (error: { stdout?: string; stderr?: string; code?: number }) => ({
        stdout: `${error.stdout ?? ''}${error.stderr ?? ''}`,
        code: typeof error.code === 'number' ? error.code : -1,
      }),
    );
    this.hooks.push({ pod: pod.metadata.name, kind, command, output: stdout.trim(), exitCode: code });
  }

  async #readEnv(pod: Pod, spec: ContainerSpec): Promise<Readonly<Record<string, string>>> {
    const { namespace = 'default', name: podName } = pod.metadata;
    const env: Record<string, string> = { HOSTNAME: podName };
    for (const { name, value, valueFrom } of spec.env ?? []) {
      const reference = valueFrom?.secretKeyRef;
      if (reference === undefined) env[name] = value ?? '';
      else {
        const path = `/api/v1/namespaces/${namespace}/secrets/${reference.name}`;
        const { data = {} } = await this.#api.get<{ data?: Record<string, string> }>(path);
        env[name] = Buffer.from(data[reference.key] ?? '', 'base64').toString();
      }
    }
    return env;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#watching;
    await Promise.all([...this.#running.values()].map(({ container }) => container?.stop(1_000)));
  }
}
