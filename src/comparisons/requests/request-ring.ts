import type { RequestRecord } from '#otel/record/registry';
import type { Observation } from '#verdict/blocks';
import { findSince } from '../find-since.ts';
import { CHUNK_SIZE, Chunk } from './chunk.ts';
import { type OutcomeReading, toObservations } from './to-observations.ts';

/**
 * A 4xx status of a replica counts as an error: a replica that refuses what its peers take is wrong, and what all of
 * them refuse is no difference. So does a connection that it refuses: it was ready when its comparison began.
 */
const READING: OutcomeReading = {
  success: 'ok',
  error: 'error',
  not_connected: 'error',
  loading: null,
  client_error: 'error',
  canceled: 'unclear',
  repeated: null,
  other: 'unclear',
};

/** Attempts that are kept at least: at 200 per second those of 20 minutes. They take 12 MB. */
const CAPACITY = 262_144;

const MAX_CHUNKS = CAPACITY / CHUNK_SIZE + 1;

export interface RingCollaborators {
  /** Whether a replica has its even share of the turns: it is not on a ramp. Called for each request. */
  readonly isWarm: (replica: string) => boolean;
  /** Whether the server that has the name now has served it: what one before it still ends says nothing of it. */
  readonly isOfPresent: (observation: Observation) => boolean;
  /** Monotonic. */
  readonly nowMs?: () => number;
}

/**
 * The facts of the latest requests of all replicas, for comparisons. They are numbered from 0 in the order in which they
 * ended. Times are monotonic. Memory is taken as requests come.
 */
export class RequestRing {
  readonly #collaborators: Required<RingCollaborators>;
  readonly #chunks: Chunk[] = [];
  /** The number of the first in the oldest chunk. */
  #first = 0;
  #completeFromMs: number;

  constructor(collaborators: RingCollaborators) {
    this.#collaborators = { nowMs: () => performance.now(), ...collaborators };
    this.#completeFromMs = this.#collaborators.nowMs();
  }

  /** The number of the oldest that is kept. */
  get first(): number {
    return this.#first;
  }

  /** The number that the next one gets. */
  get end(): number {
    return (
      this.#first + Math.max(0, this.#chunks.length - 1) * CHUNK_SIZE + (this.#chunks.at(-1)?.count ?? 0)
    );
  }

  /** All requests that have ended since then are kept. */
  get completeFromMs(): number {
    return this.#completeFromMs;
  }

  /** Takes the record of a request that has ended. */
  add(record: Readonly<RequestRecord>): void {
    const { nowMs, isWarm, isOfPresent } = this.#collaborators;
    for (const observation of toObservations(record, READING).filter(isOfPresent)) {
      this.#openChunk().add(observation, nowMs(), isWarm(observation.replica));
    }
  }

  endedMsOf(number: number): number {
    return this.#chunkOf(number).endedMsAt((number - this.#first) % CHUNK_SIZE);
  }

  /** When a request began, as far as its replica is concerned. */
  beganMsOf(number: number): number {
    return this.endedMsOf(number) - this.#chunkOf(number).e2eMsAt((number - this.#first) % CHUNK_SIZE);
  }

  replicaOf(number: number): string {
    return this.#chunkOf(number).replicaAt((number - this.#first) % CHUNK_SIZE);
  }

  /** Whether the replica of a request had its even share of the turns when it ended. */
  isWarmOf(number: number): boolean {
    return this.#chunkOf(number).isWarmAt((number - this.#first) % CHUNK_SIZE);
  }

  observationOf(number: number): Observation {
    return this.#chunkOf(number).observationAt((number - this.#first) % CHUNK_SIZE);
  }

  /** The number of the first that ended at this time or later; the next number if none did. */
  numberSince(ms: number): number {
    return findSince(this.#first, this.end, (number) => this.endedMsOf(number) >= ms);
  }

  #chunkOf(number: number): Chunk {
    const chunk = this.#chunks[Math.floor((number - this.#first) / CHUNK_SIZE)];
    if (chunk === undefined) throw new RangeError('not kept');
    return chunk;
  }

  #openChunk(): Chunk {
    const open = this.#chunks.at(-1);
    if (open !== undefined && open.count < CHUNK_SIZE) return open;
    if (this.#chunks.length >= MAX_CHUNKS) {
      this.#chunks.shift();
      this.#first += CHUNK_SIZE;
      this.#completeFromMs = this.endedMsOf(this.#first);
    }
    const chunk = new Chunk();
    this.#chunks.push(chunk);
    return chunk;
  }
}
