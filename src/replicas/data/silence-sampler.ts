import type { HealthSettings } from '#replicas/health-state';
import type { SharedState } from '#replicas/shared';
import { SILENT_AFTER, type Streams, toSampleMs } from '#replicas/silence';
import type { DeadlineClock } from '#wire';
import type { UpstreamConnections } from '#wire/upstream';

/** What a sampler reads and writes. */
export interface SilenceSamplerCollaborators {
  readonly shared: Pick<SharedState, 'silences' | 'silenceLimits' | 'silentHolders'>;
  readonly worker: number;
  readonly clock: DeadlineClock;
  readonly replicas: () => Iterable<SampledReplica>;
}

interface SampledReplica {
  readonly slot: number;
  /** Its connections: those for new requests first. */
  readonly upstreams: Iterable<Pick<UpstreamConnections, 'observeSilence' | 'endedSentMs'>>;
}

/** Silent streams on one replica that hold places in one limit. */
type SilentHolder = Parameters<SharedState['silentHolders']['note']>[1][number];

/** What a connection with a stream shows. */
type SeenStream = Parameters<NonNullable<Parameters<UpstreamConnections['observeSilence']>[0]>>[0];

/**
 * A stream is stuck if the replica has sent something to others so long after its last byte. One without a byte is if a
 * later one has begun.
 */
const STUCK_AFTER_MS = 2_000;

const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Notes for all threads how long each replica has been silent on this thread's connections, and which of its streams
 * are. It looks at the connections now and then, so that requests and their chunks do no work for it.
 */
export class SilenceSampler {
  readonly #collaborators: SilenceSamplerCollaborators;
  #timer: NodeJS.Timeout | undefined;
  #sampleMs = 0;

  constructor(collaborators: SilenceSamplerCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Samples from now on, often enough for this duration. Null: as often as it takes to show what is silent. */
  configure(frozenAfterMs: HealthSettings['frozenAfterMs']): void {
    const sampleMs = toSampleMs(frozenAfterMs);
    if (sampleMs === this.#sampleMs) return;
    this.stop();
    this.#sampleMs = sampleMs;
    // After a stall, bytes may already be in the sockets. They are read before immediates run.
    this.#timer = setInterval(() => setImmediate(() => this.sample()), sampleMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Notes what is to be seen now. */
  sample(): void {
    const { shared, worker, clock, replicas } = this.#collaborators;
    const { silences: table } = shared;
    const offsetMs = table.nowMs() - clock.nowMs();
    const toShared = (ms: number) => (Number.isFinite(ms) ? ms + offsetMs : null);
    const holders: SilentHolder[] = [];
    for (const { slot, upstreams } of replicas()) {
      const tally = new StreamTally(this.#collaborators, slot, offsetMs);
      const times = { heardMs: NEVER, waitingSinceMs: Infinity, endedSentMs: NEVER };
      for (const upstream of upstreams) {
        const { heardMs, waitingSinceMs } = upstream.observeSilence((seen) => tally.add(seen));
        times.heardMs = Math.max(times.heardMs, heardMs ?? NEVER);
        times.waitingSinceMs = Math.min(times.waitingSinceMs, waitingSinceMs ?? Infinity);
        times.endedSentMs = Math.max(times.endedSentMs, upstream.endedSentMs ?? NEVER);
      }
      table.note(worker, slot, {
        heardMs: toShared(times.heardMs),
        waitingSinceMs: toShared(times.waitingSinceMs),
      });
      table.noteStreams(worker, slot, tally.finish(times.endedSentMs));
      for (const [row, count] of tally.heldRows) holders.push({ row, slot, count });
    }
    shared.silentHolders.note(worker, holders);
    table.noteSampled(worker);
  }
}

/** A stream that is silent, in the time of this thread. */
interface SilentStream {
  readonly silentSinceMs: number;
  readonly limitMs: number;
  /** When it was sent, if its first byte has not come; else null. */
  readonly waitsSinceMs: number | null;
}

/** The streams of one replica at one time. */
class StreamTally {
  readonly #shared: SilenceSamplerCollaborators['shared'];
  readonly #slot: number;
  readonly #offsetMs: number;
  readonly #nowMs: number;
  #running = 0;
  readonly #silent: SilentStream[] = [];
  /** How many of them hold a place in a limit, by its row. */
  readonly heldRows = new Map<number, number>();
  /** When the last request was sent of those whose streams have begun. */
  #begunSentMs = NEVER;

  constructor(
    { shared, clock }: Pick<SilenceSamplerCollaborators, 'shared' | 'clock'>,
    slot: number,
    offsetMs: number,
  ) {
    this.#shared = shared;
    this.#slot = slot;
    this.#offsetMs = offsetMs;
    this.#nowMs = clock.nowMs();
  }

  add({ stream, silentSinceMs, sentMs, isAnswering }: SeenStream): void {
    this.#running++;
    if (isAnswering && sentMs > this.#begunSentMs) this.#begunSentMs = sentMs;
    if (silentSinceMs === null) return;
    const silentMs = this.#nowMs - silentSinceMs;
    if (silentMs < SILENT_AFTER.minMs) return;
    const limitMs = this.#limitOf(stream, isAnswering);
    if (silentMs < limitMs) return;
    this.#silent.push({ silentSinceMs, limitMs, waitsSinceMs: isAnswering ? null : sentMs });
    for (const row of stream.holds) this.heldRows.set(row, (this.heldRows.get(row) ?? 0) + 1);
  }

  /** `endedSentMs`: when the last request was sent of those whose streams have ended; NEVER: none has. */
  finish(endedSentMs: number): Streams {
    const { silences } = this.#shared;
    const heardMs = silences.heardOf(this.#slot) ?? NEVER;
    const begunSentMs = Math.max(this.#begunSentMs, endedSentMs);
    // Engines begin with what came first. While they read a long prompt, others wait.
    const isStuck = ({ silentSinceMs, waitsSinceMs }: SilentStream) =>
      waitsSinceMs === null
        ? heardMs >= silentSinceMs + this.#offsetMs + STUCK_AFTER_MS
        : begunSentMs > waitsSinceMs;
    const stuck = this.#silent.filter(
      (each) => each.silentSinceMs + this.#offsetMs >= silences.judgedFromOf(this.#slot) && isStuck(each),
    );
    return {
      running: this.#running,
      silent: this.#silent.length,
      stuck: stuck.length,
      oldestMs: this.#toShared(Math.min, this.#silent, ({ silentSinceMs }) => silentSinceMs),
      newestMs: this.#toShared(Math.max, stuck, ({ silentSinceMs, limitMs }) => silentSinceMs + limitMs),
    };
  }

  #toShared(
    choose: (...times: readonly number[]) => number,
    streams: readonly SilentStream[],
    toMs: (stream: SilentStream) => number,
  ): number | null {
    return streams.length === 0 ? null : choose(...streams.map(toMs)) + this.#offsetMs;
  }

  #limitOf({ kind, size }: SeenStream['stream'], isAnswering: boolean): number {
    const { silenceLimits: limits } = this.#shared;
    return isAnswering ? limits.gapMsOf(kind) : limits.firstByteMsOf(kind, limits.sizeClassOf(size));
  }
}
