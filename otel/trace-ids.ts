import { randomFillSync } from 'node:crypto';
import type { IdGenerator } from '@opentelemetry/sdk-trace';

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** Bytes drawn at once: drawing 24 a request costs ten times as much (2.1 against 0.2 µs on Node 26.10). */
const POOL_BYTES = 4096;

/**
 * Trace and span ids from the system's random numbers: the ids reach clients' replicas, and Math.random's can be
 * foretold from a few. Never all zero, which W3C Trace Context calls invalid.
 */
export function createIdGenerator(): IdGenerator {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;

  function nextHex(bytes: number): string {
    if (used + bytes > POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const hex = pool.toString('hex', used, used + bytes);
    used += bytes;
    return /[^0]/.test(hex) ? hex : nextHex(bytes);
  }

  return {
    generateTraceId: () => nextHex(TRACE_ID_BYTES),
    generateSpanId: () => nextHex(SPAN_ID_BYTES),
  };
}

/** The header of W3C Trace Context level 1 for our own ids. */
export function toTraceparent(
  ids: { readonly traceId: string; readonly spanId: string },
  flags: '00' | '01',
): string {
  return `00-${ids.traceId}-${ids.spanId}-${flags}`;
}
