import type { Journal } from '../journal.ts';
import { type SoakReplica, startSoakReplica } from './soak-replica.ts';

/** The names of the replicas. */
export const REPLICA_NAMES = ['r0', 'r1', 'r2'] as const;

/** Replicas that can be restarted on their ports. */
export interface Replicas extends AsyncDisposable {
  readonly list: readonly { readonly name: string; readonly url: string }[];
  /** Those that are running. */
  readonly runningUrls: readonly string[];
  /** The requests that were open on a replica when it crashed. */
  readonly cutIds: ReadonlySet<string>;
  /** Requests that were open on a replica when it stopped, although the gateways had said that it is safe. */
  readonly wronglySafe: number;
  /** Ends a replica with whatever runs on it. */
  crash(name: string): Promise<void>;
  /** Ends a replica that is said to be safe to stop. */
  stop(name: string): Promise<void>;
  start(name: string): Promise<void>;
}

/** Starts three replicas. */
export async function startReplicas(journal: Journal): Promise<Replicas> {
  const running = new Map<string, SoakReplica>();
  const ports = new Map<string, number>();
  const cutIds = new Set<string>();
  let wronglySafe = 0;
  const start = async (name: string) => {
    const replica = await startSoakReplica(name, ports.get(name) ?? 0);
    ports.set(name, replica.port);
    running.set(name, replica);
  };
  const close = async (name: string) => {
    const replica = running.get(name);
    running.delete(name);
    await replica?.close();
  };
  for (const name of REPLICA_NAMES) await start(name);
  return {
    list: REPLICA_NAMES.map((name) => ({ name, url: `http://127.0.0.1:${ports.get(name)}` })),
    get runningUrls() {
      return [...running.values()].map(({ url }) => url);
    },
    cutIds,
    get wronglySafe() {
      return wronglySafe;
    },
    async crash(name) {
      const end = journal.begin('ended', name);
      for (const id of running.get(name)?.openIds ?? []) cutIds.add(id);
      await close(name);
      end();
    },
    async stop(name) {
      wronglySafe += running.get(name)?.openIds.size ?? 0;
      await close(name);
    },
    start,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...running.values()].map((replica) => replica.close()));
    },
  };
}
