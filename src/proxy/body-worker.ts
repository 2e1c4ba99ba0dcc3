import { parentPort, workerData } from 'node:worker_threads';
import type { RecordedEndpoint } from '#otel/request-record.ts';
import { createPrefixHasher, type PrefixHashSettings } from '../record/prefix-hashes.ts';
import { describeRequestText, type RequestTextDescription } from '../record/request-text.ts';
import { Failure, type FailureCode } from './failure.ts';
import { type RequestFacts, readRequestFacts } from './request-facts.ts';

/** A large body to be read. The memory of its parts belongs to the thread. */
export interface InspectionJob {
  readonly id: number;
  readonly endpoint: RecordedEndpoint;
  readonly sizeBytes: number;
  readonly parts: readonly Uint8Array[];
}

/** What became of a job: the body in memory that both threads see, or why it was refused. */
export type InspectionReply =
  | {
      readonly id: number;
      readonly kind: 'inspected';
      readonly buffer: SharedArrayBuffer;
      readonly facts: RequestFacts;
      readonly text: RequestTextDescription;
    }
  | { readonly id: number; readonly kind: 'refused'; readonly code: FailureCode }
  | { readonly id: number; readonly kind: 'defect' };

// This file is the entry of the thread that body-inspector.ts starts.
const settings = workerData as PrefixHashSettings;
const hasher = createPrefixHasher({ ...settings, salt: Buffer.from(settings.salt) });

parentPort?.on('message', (job: InspectionJob) => parentPort?.postMessage(toReply(job)));

function toReply(job: InspectionJob): InspectionReply {
  const { id, endpoint } = job;
  try {
    const bytes = join(job);
    const facts = readRequestFacts(bytes, endpoint);
    const text = describeRequestText(bytes, facts, endpoint, hasher);
    return { id, kind: 'inspected', buffer: bytes.buffer, facts, text };
  } catch (error) {
    // Of anything unforeseen nothing is told: its message could quote the request.
    return error instanceof Failure ? { id, kind: 'refused', code: error.code } : { id, kind: 'defect' };
  }
}

/** One piece, in memory that need not be copied again to be sent by the other thread. */
function join({ parts, sizeBytes }: InspectionJob): Buffer<SharedArrayBuffer> {
  const bytes = Buffer.from(new SharedArrayBuffer(sizeBytes));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
