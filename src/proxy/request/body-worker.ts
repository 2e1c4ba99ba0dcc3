import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { RecordedEndpoint } from '#otel/encode/recorded-endpoint.ts';
import { Failure, type FailureCode } from '../failure.ts';
import { createPrefixHasher, type PrefixHasher, type PrefixHashSettings } from '../record/prefix-hashes.ts';
import { InspectionQueue } from './inspection-queue.ts';
import { type RequestFacts, readRequestFacts } from './request-facts.ts';
import { describeRequestText, type RequestTextDescription } from './request-text.ts';

/** A large body to be read. The memory of its parts belongs to the thread. */
export interface InspectionJob {
  readonly id: number;
  readonly endpoint: RecordedEndpoint;
  readonly sizeBytes: number;
  readonly parts: readonly Uint8Array<ArrayBuffer>[];
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

/** One for each job under way: a hasher does one text at a time. */
const hashers: PrefixHasher[] = [];

/** Members and elements that are gone over before a job gives way: a few tenths of a millisecond. */
const MEMBERS_A_TURN = 4096;

const port = parentPort;
if (port !== null) {
  const queue = new InspectionQueue<InspectionJob>({
    // Without a turn of the event loop, so in the middle of a job.
    receive: () => receiveMessageOnPort(port)?.message as InspectionJob | undefined,
    carryOut: (job, giveWay, depth) => port.postMessage(toReply(job, giveWay, depth)),
  });
  port.on('message', (job: InspectionJob) => queue.run(job));
}

function toReply(job: InspectionJob, giveWay: () => void, depth: number): InspectionReply {
  const { id, endpoint } = job;
  const allowance = { count: MEMBERS_A_TURN, onSpent: giveWay };
  try {
    const bytes = join(job);
    giveWay();
    const facts = readRequestFacts(bytes, endpoint, allowance);
    giveWay();
    const text = describeRequestText(bytes, facts, endpoint, hasherOf(depth), allowance);
    return { id, kind: 'inspected', buffer: bytes.buffer, facts, text };
  } catch (error) {
    // Of anything unforeseen nothing is told: its message could quote the request.
    return error instanceof Failure ? { id, kind: 'refused', code: error.code } : { id, kind: 'defect' };
  }
}

function hasherOf(depth: number): PrefixHasher {
  hashers[depth] ??= createPrefixHasher({ ...settings, salt: Buffer.from(settings.salt) });
  return hashers[depth];
}

/** One piece, in memory that need not be copied again to be sent by the other thread. */
function join({ parts, sizeBytes }: InspectionJob): Buffer<SharedArrayBuffer> {
  const bytes = Buffer.from(new SharedArrayBuffer(sizeBytes));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  // Freed now, not when somebody collects garbage: a body is in memory once, however long the job is under way.
  for (const { buffer } of parts) if (!buffer.detached) buffer.transfer(0);
  return bytes;
}
