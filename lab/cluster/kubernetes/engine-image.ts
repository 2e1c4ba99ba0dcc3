import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeServer } from '#testkit/servers/local-server.ts';
import { createSimulatedReplica, type SimulatedReplica } from '../../../src/simulate/create-replica.ts';
import type { Container, Image } from './kubelet.ts';
import type { Pod } from './pod.ts';

/** The annotation of a pod that says how its engine behaves: JSON. */
export const ENGINE = 'spangate.lab/engine';

/** How an engine differs from a good one. */
export interface EngineSettings {
  readonly ttftMs?: number;
  readonly gapMs?: number;
  readonly errorRate?: number;
  /** Until then it answers /health, and has no model. */
  readonly loadingMs?: number;
  readonly models?: readonly string[];
}

/** What became of an engine's requests. */
export interface EngineReport {
  readonly pod: string;
  readonly received: number;
  /** Requests that its end has cut. */
  readonly cut: number;
}

/** How the engines' pods are played. */
export interface EngineImage extends Image {
  /** Those that have ended. */
  readonly ended: readonly EngineReport[];
}

/** Plays the pods with an image of vLLM: a simulated replica at the pod's address. */
export function createEngineImage(): EngineImage {
  const ended: EngineReport[] = [];
  let count = 0;
  return {
    ended,
    isOf: ({ image }) => image.startsWith('vllm/'),
    nextIp: () => `10.99.${1 + (count >> 7)}.${2 + (count++ & 127)}`,
    async start(pod, { ip }): Promise<Container> {
      const settings = readSettings(pod);
      const port = pod.spec.containers[0].ports?.[0]?.containerPort ?? 8000;
      const { name } = pod.metadata;
      const speed = { ttftMs: settings.ttftMs ?? 20, gapMs: settings.gapMs ?? 4, tokens: 16 };
      const replica = createSimulatedReplica({
        name,
        host: ip,
        port,
        ...speed,
        models: settings.models ?? ['m'],
        errorRate: settings.errorRate ?? 0,
        faults: ['status_500'],
        seed: 1 + count,
      });
      const stopped = new AbortController();
      const loading = settings.loadingMs === undefined ? null : await startLoading(ip, port);
      const isServing = sleep(settings.loadingMs ?? 0, undefined, { signal: stopped.signal }).then(
        async () => {
          if (loading !== null) await closeServer(loading);
          await replica.start();
          return true;
        },
        () => false,
      );
      if (settings.loadingMs === undefined) await isServing;
      return {
        async stop(graceMs) {
          stopped.abort();
          if (await isServing) await finish(replica, graceMs);
          else if (loading !== null) await closeServer(loading);
          const { requestsReceived, openRequests } = replica.facts();
          ended.push({ pod: name, received: requestsReceived, cut: openRequests });
          if (await isServing) await replica.close();
        },
      };
    },
  };
}

/** As `vllm serve --shutdown-timeout` does: what runs goes on. */
async function finish(replica: SimulatedReplica, graceMs: number): Promise<void> {
  const startedMs = performance.now();
  while (replica.facts().openRequests > 0 && performance.now() - startedMs < graceMs) await sleep(20);
}

/** An engine that loads its model: its health path answers already. */
async function startLoading(ip: string, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    const body = request.url === '/v1/models' ? '{"object":"list","data":[]}' : '';
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(body);
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, ip, resolve));
  return server;
}

function readSettings({ metadata }: Pod): EngineSettings {
  return JSON.parse(metadata.annotations?.[ENGINE] ?? '{}') as EngineSettings;
}
