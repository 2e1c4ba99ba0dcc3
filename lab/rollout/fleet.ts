import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSimulatedReplica, type SimulatedReplica } from '../../src/simulate/create-replica.ts';
import type { Load } from './load.ts';

const NAMES = ['vllm-0', 'vllm-1', 'vllm-2', 'vllm-3'];

/** Replicas and clients are one process here: on a busy machine it takes a while to accept a connection. */
export const CONNECT_TIMEOUT = '30s';

/** Requests that are sent while a drained replica still serves, while it is down, and while it is back but drained. */
const REQUESTS_PER_PHASE = 60;

/** One of the replicas. */
export interface FleetReplica {
  readonly name: string;
  readonly url: string;
}

/** What goes on beside a restart. */
export interface FleetHooks {
  /** Called before a replica is stopped. */
  readonly onRestart?: (name: string) => void;
  /** Called when it serves again; the restart is over when this resolves. */
  readonly onRestarted?: (name: string) => Promise<void> | void;
  /** Where each listens; 127.0.0.1 by default. A replica of another address is named after it, as behind a name. */
  readonly hosts?: readonly string[];
}

/** Four simulated replicas that can be restarted by an HTTP call, as a rollout's command does. */
export interface Fleet extends AsyncDisposable {
  readonly replicas: readonly FleetReplica[];
  /** POST here, with a replica's name added, restarts it and answers when it serves again. */
  readonly restartUrl: string;
  /** In the order in which they were restarted. */
  readonly restarted: readonly string[];
  /** Requests that came to a replica between the end of its drain and its undrain. */
  readonly reachedWhileDrained: number;
  /** Requests that were open when a replica was stopped. */
  readonly cut: number;
  /** Stops replicas for good. */
  kill(...names: readonly string[]): Promise<void>;
  /** What a replica counts itself; null while it is down. */
  factsOf(name: string): ReturnType<SimulatedReplica['facts']> | null;
}

/** Starts the replicas. `load` is asked for at each restart: it is what goes on meanwhile. */
export async function startFleet(
  load: () => Pick<Load, 'untilEnded'>,
  { onRestart, onRestarted, hosts }: FleetHooks = {},
): Promise<Fleet> {
  const names = hosts?.map((host) => `vllm-${host}`) ?? NAMES;
  const running = new Map<string, { readonly replica: SimulatedReplica; readonly url: string }>();
  const counts = { reachedWhileDrained: 0, cut: 0 };
  const restarted: string[] = [];

  const start = async (name: string, port: number) => {
    const host = hosts?.[names.indexOf(name)] ?? '127.0.0.1';
    const speed = { ttftMs: 20, gapMs: 5, tokens: 16 };
    const replica = createSimulatedReplica({ name, host, port, models: ['m'], ...speed });
    const { url } = await replica.start();
    running.set(name, { replica, url });
    return replica;
  };

  const restart = async (name: string) => {
    const { replica, url } = running.get(name) ?? {};
    if (replica === undefined || url === undefined) throw new Error(`no replica ${name}`);
    onRestart?.(name);
    const { requestsReceived } = replica.facts();
    await load().untilEnded(REQUESTS_PER_PHASE);
    counts.reachedWhileDrained += replica.facts().requestsReceived - requestsReceived;
    counts.cut += replica.facts().openRequests;
    running.delete(name);
    await replica.close();
    await load().untilEnded(REQUESTS_PER_PHASE);
    const successor = await start(name, Number(new URL(url).port));
    await load().untilEnded(REQUESTS_PER_PHASE);
    counts.reachedWhileDrained += successor.facts().requestsReceived;
    restarted.push(name);
    await onRestarted?.(name);
  };

  const server = createServer((request, response) => {
    restart(request.url?.slice(1) ?? '').then(
      () => response.writeHead(204).end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  for (const name of names) await start(name, 0);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    replicas: names.map((name) => ({ name, url: running.get(name)?.url ?? '' })),
    restartUrl: `http://127.0.0.1:${port}/`,
    restarted,
    get reachedWhileDrained() {
      return counts.reachedWhileDrained;
    },
    get cut() {
      return counts.cut;
    },
    kill: async (...killed) => {
      await Promise.all(killed.map((name) => running.get(name)?.replica.close()));
      for (const name of killed) running.delete(name);
    },
    factsOf: (name) => running.get(name)?.replica.facts() ?? null,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.all([...running.values()].map(({ replica }) => replica.close()));
    },
  };
}
