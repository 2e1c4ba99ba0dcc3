import type { Finding, Producer } from '#conditions';

/** How much of a resource is used, and how much can be. */
interface Usage {
  readonly now: number;
  readonly limit: number;
}

/** What the gateway has only so much of. */
export interface RoomSources {
  /** Requests that wait for a replica. */
  readonly waiting: () => Usage;
  /** Bytes of request bodies. */
  readonly buffered: () => Usage;
  /** Connections of clients. */
  readonly connections: () => Usage;
  /** Open files and sockets of the process; null where the system does not say. */
  readonly descriptors: () => Usage | null;
}

/** The share of a limit from which it is nearly reached. */
const NEAR = 0.8;

/** Limits that are reached, or nearly. */
export function createRoomProducer(sources: RoomSources): Producer {
  return function* (): Generator<Finding> {
    const { now: waiting, limit } = sources.waiting();
    if (waiting > NEAR * limit) yield { id: 'waiting_long', subject: '', figures: { waiting, limit } };
    const { now: used, limit: bytes } = sources.buffered();
    if (used > NEAR * bytes) yield { id: 'buffers_near_limit', subject: '', figures: { used, limit: bytes } };
    yield* connectionFindings(sources.connections());
    const descriptors = sources.descriptors();
    if (descriptors !== null && descriptors.now > NEAR * descriptors.limit) {
      const figures = { open: descriptors.now, limit: descriptors.limit };
      yield { id: 'descriptors_near_limit', subject: '', figures };
    }
  };
}

function* connectionFindings({ now: open, limit }: Usage): Generator<Finding> {
  if (open >= limit) yield { id: 'connections_full', subject: '', figures: { limit } };
  else if (open > NEAR * limit) yield { id: 'connections_near_limit', subject: '', figures: { open, limit } };
}
