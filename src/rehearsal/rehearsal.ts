/*
 * Made-up requests through a data plane that serves nobody, before the one that serves listens. By then V8 has compiled
 * what a request runs, so the first clients do not wait for it.
 *
 * It never knows the data plane that serves, and leaves no record.
 * Begin with `rehearse`; exchanges.ts has the requests.
 */

import type { PoolSnapshot, ReplicaConfig } from '#replicas/terms';
import { exchangeOf, MODEL } from './exchanges.ts';
import { ANY_PORT, LoopbackClient, startReplica } from './loopback.ts';

/** A data plane of its own, with nothing in common with any that serves. */
export interface RehearsedPlane {
  apply(topology: PoolSnapshot): Promise<void>;
  listen(address: { readonly host: string; readonly port: number }): Promise<number>;
  close(): Promise<void>;
}

/** So many requests run all that a request runs. More make no difference to the first second (docs/evidence/benchmarks.md). */
const REQUESTS = 100;
const CLIENTS = 4;
/** A gateway does not start later for it than that. */
const TIMEOUT_MS = 2_000;

/**
 * Sends requests over loopback through the data plane to a replica of its own, and closes it. Rejects with the reason if it
 * ends before its end, which harms nothing.
 */
export async function rehearse(plane: RehearsedPlane): Promise<void> {
  const replica = await startReplica();
  try {
    await plane.apply(toTopology(replica.port));
    await sendAll(await plane.listen(ANY_PORT));
  } finally {
    await plane.close();
    replica.close();
  }
}

async function sendAll(port: number): Promise<void> {
  const clients = Array.from({ length: CLIENTS }, () => new LoopbackClient(port));
  const end = () => {
    for (const client of clients) client[Symbol.dispose]();
  };
  const deadline = setTimeout(end, TIMEOUT_MS);
  try {
    await Promise.all(
      clients.map(async (client, first) => {
        for (let index = first; index < REQUESTS; index += CLIENTS) {
          await client.exchange(exchangeOf(Math.floor(index / CLIENTS)));
        }
      }),
    );
  } finally {
    clearTimeout(deadline);
    end();
  }
}

function toTopology(port: number): PoolSnapshot {
  const config: ReplicaConfig = {
    name: MODEL,
    url: `http://127.0.0.1:${port}`,
    host: '127.0.0.1',
    apiKey: null,
    gpuModel: null,
    gpuCount: null,
    gpuHourPrice: null,
    maxInflight: null,
    role: 'serve',
    models: [MODEL],
    engine: 'vllm',
  };
  const knowledge = { models: [MODEL], engine: 'vllm', engineVersion: null } as const;
  return {
    version: 1,
    replicas: [{ slot: 0, config, knowledge, shadow: null }],
    isComplete: true,
    cursors: new Map([[MODEL, 0]]),
  };
}
