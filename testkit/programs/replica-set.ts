import { createServer } from 'node:http';
import { createSimulatedReplica } from '#simulate';
import type { SimulatedReplica } from '../../src/simulate/create-replica.ts';
import type { Load } from '../load/load.ts';
import { closeServer, listen } from '../servers/local-server.ts';
import type { Tell } from './progress.ts';

const NAMES = ['vllm-0', 'vllm-1', 'vllm-2', 'vllm-3'];

/** Replicas and clients share one process: on a busy machine it may be slow to accept a connection. */
export const CONNECT_TIMEOUT = '30s';

const REQUESTS_PER_PHASE = 60;

/** How much a rollout does. The programs use the defaults; the tests take less. */
export interface RolloutSize {
  /** Requests sent in each phase of a restart: drained and up, down, up again and still drained. Default: 60. */
  readonly requestsPerPhase?: number;
  /** Names of the replicas that are rolled, in this order. Default: all. */
  readonly rolled?: readonly string[];
  /** Is told what the rollout does. */
  readonly tell?: Tell;
}

/** How replicas are restarted, and what happens beside it. */
export interface ReplicaSetOptions extends Pick<RolloutSize, 'requestsPerPhase'> {
  /** Called before a replica is stopped. */
  readonly onRestart?: (name: string) => void;
  /** Called when the replica serves again; the restart is complete when this resolves. */
  readonly onRestarted?: (name: string) => Promise<void> | void;
  /** The address of each replica, which then is named after it; by default 127.0.0.1. */
  readonly hosts?: readonly string[];
}

/** Four simulated replicas that an HTTP call restarts, as the command of a rollout does. */
export interface ReplicaSet extends AsyncDisposable {
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  /** A POST to this URL with a replica's name appended restarts the replica and is answered when it serves again. */
  readonly restartUrl: string;
  /** Names in the order of the restarts. */
  readonly restarted: readonly string[];
  /** Requests that reached a replica between the end of its drain and its undrain. */
  readonly reachedWhileDrained: number;
  /** Requests that were open when a replica was stopped. */
  readonly cut: number;
  /** Stops replicas for good. */
  kill(...names: readonly string[]): Promise<void>;
  /** The replica's own counts; null while it is down. */
  factsOf(name: string): ReturnType<SimulatedReplica['facts']> | null;
}

/** Starts the replicas. `load` returns the load that continues during a restart. */
export async function startReplicaSet(
  load: () => Pick<Load, 'untilEnded'>,
  { onRestart, onRestarted, hosts, requestsPerPhase = REQUESTS_PER_PHASE }: ReplicaSetOptions = {},
): Promise<ReplicaSet> {
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
    await load().untilEnded(requestsPerPhase);
    counts.reachedWhileDrained += replica.facts().requestsReceived - requestsReceived;
    counts.cut += replica.facts().openRequests;
    running.delete(name);
    await replica.close();
    await load().untilEnded(requestsPerPhase);
    const successor = await start(name, Number(new URL(url).port));
    await load().untilEnded(requestsPerPhase);
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
  const port = await listen(server);
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
      await closeServer(server);
      await Promise.all([...running.values()].map(({ replica }) => replica.close()));
    },
  };
}
