import { allocateClientLimits, ClientLimitTable } from '#access/limits';
import type { Config } from '#config';
import { allocateEventLoopDelays, clearEventLoopDelay, type EventLoopDelayMemory } from '#otel/metrics';
import { allocateSharedState, SharedState, type SharedStateMemory } from '#replicas/shared';
import { allocateStoredResponses } from '#replicas/stored-responses';
import { allocateLimit, clearLimit, type LimitMemory } from '#shared-memory';
import { capConnections, readMaxFiles } from './file-descriptors.ts';

/** What all data planes of a gateway share in memory. */
export interface ServingMemory {
  readonly replicas: SharedStateMemory;
  /** Bytes of request bodies. */
  readonly buffered: LimitMemory;
  /** Client connections. */
  readonly connections: LimitMemory;
  /** What clients with limits have used of them. */
  readonly clientLimits: ReturnType<typeof allocateClientLimits>;
  /** Which replica has which response. */
  readonly storedResponses: SharedArrayBuffer;
  /** What each thread says of its event loop: the main thread, and each worker that has one of its own. */
  readonly eventLoopDelays: EventLoopDelayMemory;
}

/** Reserves the memory that `workerCount` workers share. */
export function allocateServingMemory(
  workerCount: number,
  { bufferedBytes, connections }: Config['limits'],
): ServingMemory {
  return {
    replicas: allocateSharedState(workerCount),
    buffered: allocateLimit(workerCount, bufferedBytes),
    connections: allocateLimit(workerCount, capConnections(connections, readMaxFiles())),
    clientLimits: allocateClientLimits(workerCount),
    storedResponses: allocateStoredResponses(),
    eventLoopDelays: allocateEventLoopDelays(workerCount === 1 ? 0 : workerCount),
  };
}

/** Frees what the thread of a worker held when it ended. */
export function freeWorkerMemory(memory: ServingMemory, worker: number): void {
  new SharedState(memory.replicas).clearWorker(worker);
  new ClientLimitTable(memory.clientLimits).clearWorker(worker);
  clearLimit(memory.buffered, worker);
  clearLimit(memory.connections, worker);
  clearEventLoopDelay(memory.eventLoopDelays, worker + 1);
}
