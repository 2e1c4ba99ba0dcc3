import { createServer } from 'node:http';
import { listen } from '../../src/http/listener.ts';
import { createSimulatedReplica, type SimulatedReplica } from '../../src/simulate/create-replica.ts';
import type { Load } from './load.ts';

const NAMES = ['vllm-0', 'vllm-1', 'vllm-2', 'vllm-3'];

/** Replicas and clients are one process here: on a busy machine it takes a while to accept a connection. */
export const CONNECT_TIMEOUT = '30s';

/** Requests that are sent while a drained replica still serves, while it is down, and while it is back but drained. */
const REQUESTS_PER_PHASE = 60;

/** Four simulated replicas that can be restarted by an HTTP call, as a rollout's command does. */
export interface Fleet extends AsyncDisposable {
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  /** POST here, with a replica's name added, restarts it and answers when it serves again. */
  readonly restartUrl: string;
  /** In the order in which they were restarted. */
  readonly restarted: readonly string[];
  /** Requests that came to a replica between the end of its drain and its undrain. */
  readonly reachedWhileDrained: number;
  /** Requests that were open when a replica was stopped. */
  readonly cut: number;
  /** What a replica counts itself; null while it is down. */
  factsOf(name: string): ReturnType<SimulatedReplica['facts']> | null;
}

/**
 * Starts the replicas. `load` is asked for at each restart: it is what goes on meanwhile. `onRestart` is told of each
 * before the replica is stopped.
 */
export async function startFleet(
  load: () => Pick<Load, 'untilEnded'>,
  onRestart: (name: string) => void = () => undefined,
): Promise<Fleet> {
  const running = new Map<string, { readonly replica: SimulatedReplica; readonly url: string }>();
  const counts = { reachedWhileDrained: 0, cut: 0 };
  const restarted: string[] = [];

  const start = async (name: string, port: number) => {
    const replica = createSimulatedReplica({ name, port, models: ['m'], ttftMs: 20, gapMs: 5, tokens: 16 });
    const { url } = await replica.start();
    running.set(name, { replica, url });
    return replica;
  };

  const restart = async (name: string) => {
    const { replica, url } = running.get(name) ?? {};
    if (replica === undefined || url === undefined) throw new Error(`no replica ${name}`);
    onRestart(name);
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
  };

  const server = createServer((request, response) => {
    restart(request.url?.slice(1) ?? '').then(
      () => response.writeHead(204).end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  for (const name of NAMES) await start(name, 0);
  const port = await listen(server, { host: '127.0.0.1', port: 0 });
  return {
    replicas: NAMES.map((name) => ({ name, url: running.get(name)?.url ?? '' })),
    restartUrl: `http://127.0.0.1:${port}/`,
    restarted,
    get reachedWhileDrained() {
      return counts.reachedWhileDrained;
    },
    get cut() {
      return counts.cut;
    },
    factsOf: (name) => running.get(name)?.replica.facts() ?? null,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.all([...running.values()].map(({ replica }) => replica.close()));
    },
  };
}
