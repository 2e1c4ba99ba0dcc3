import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FailedRequest } from './attribution.ts';

/** A client that reads slowly waits so long after each piece. */
const SLOW_PAUSE_MS = 20;

/** One request and what is known of it so far. */
export class Exchange {
  readonly kind: string;
  readonly hasRecord: boolean;
  readonly startedMs = performance.now();
  connectedMs = this.startedMs;
  requestId: string | null = null;
  isCut = false;

  constructor(kind: string, hasRecord: boolean) {
    this.kind = kind;
    this.hasRecord = hasRecord;
  }

  toFailed(reason: string): FailedRequest {
    const { requestId, hasRecord, kind, isCut, startedMs, connectedMs } = this;
    return { requestId, hasRecord, kind, reason, isCut, startedMs, connectedMs, endedMs: performance.now() };
  }
}

const KEPT_BYTES = 4_096;

/** The beginning of a body, and whether its end tells of an error. */
export async function readBody(response: IncomingMessage, isSlow: boolean) {
  let start = Buffer.alloc(0);
  let end = Buffer.alloc(0);
  for await (const chunk of response) {
    const bytes = chunk as Buffer;
    if (start.length < KEPT_BYTES) start = Buffer.concat([start, bytes.subarray(0, KEPT_BYTES)]);
    end = Buffer.concat([end.subarray(-KEPT_BYTES), bytes.subarray(-KEPT_BYTES)]).subarray(-KEPT_BYTES);
    if (isSlow) await sleep(SLOW_PAUSE_MS);
  }
  return { start: start.toString('latin1'), hasError: end.toString('latin1').includes('"error"') };
}

/** Why a connection broke: a code of Node, such as ECONNRESET. */
export function toReason(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
