import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { findRecordedEndpoint } from '../../endpoints/table.ts';
import { Failure, type FailureCode } from '../../failure.ts';
import {
  createPrefixHasher,
  type PrefixHasher,
  type PrefixHashSettings,
} from '../../record/prefix-hashes.ts';
import type { ModelAliases } from '../model-aliases.ts';
import { InspectionQueue } from './inspection-queue.ts';
import { type RequestFacts, readRequestFacts } from './request-facts.ts';
import { describeRequestText, type RequestTextDescription } from './request-text.ts';

/** A large body to read. The memory of its parts belongs to the thread. */
export interface InspectionJob {
  readonly id: number;
  /** The path of its endpoint. */
  readonly path: string;
  readonly aliases: ModelAliases;
  readonly sizeBytes: number;
  readonly parts: readonly Uint8Array<ArrayBuffer>[];
}

/** The result of a job: the body in one piece, or why it was refused. */
export type InspectionReply =
  | {
      readonly id: number;
      readonly kind: 'inspected';
      readonly buffer: ArrayBuffer;
      readonly facts: RequestFacts;
      readonly text: RequestTextDescription;
    }
  | { readonly id: number; readonly kind: 'refused'; readonly code: FailureCode }
  | { readonly id: number; readonly kind: 'defect' };

/** How many members and elements are read before a job yields: a few tenths of a millisecond. */
const MEMBERS_PER_TURN = 4096;

// This file is the entry of the thread that body-inspector.ts starts.
if (parentPort !== null) inspectJobsOf(parentPort, workerData as PrefixHashSettings);

function inspectJobsOf(port: MessagePort, settings: PrefixHashSettings): void {
  // A hasher reads one text at a time, so each job under way has its own.
  const hashers: PrefixHasher[] = [];
  const hasherOf = (depth: number): PrefixHasher => {
    hashers[depth] ??= createPrefixHasher({ ...settings, salt: Buffer.from(settings.salt) });
    return hashers[depth];
  };
  const queue = new InspectionQueue<InspectionJob>({
    // Receives in the middle of a job, without a turn of the event loop.
    receive: () => receiveMessageOnPort(port)?.message as InspectionJob | undefined,
    carryOut(job, giveWay, depth) {
      const reply = toReply(job, giveWay, hasherOf(depth));
      // The memory moves with it: this thread, which may be idle for long, would free its part of it late.
      port.postMessage(reply, reply.kind === 'inspected' ? [reply.buffer] : []);
    },
  });
  port.on('message', (job: InspectionJob) => queue.run(job));
}

function toReply(job: InspectionJob, giveWay: () => void, hasher: PrefixHasher): InspectionReply {
  const { id, path, aliases } = job;
  const allowance = { count: MEMBERS_PER_TURN, onSpent: giveWay };
  try {
    const endpoint = findRecordedEndpoint(path);
    if (endpoint === undefined) return { id, kind: 'defect' };
    const bytes = join(job);
    giveWay();
    const facts = readRequestFacts(bytes, endpoint, aliases, allowance);
    giveWay();
    const text = describeRequestText(bytes, facts, endpoint, hasher, allowance);
    return { id, kind: 'inspected', buffer: bytes.buffer, facts, text };
  } catch (error) {
    // The message of an unexpected error is dropped: it could quote the request.
    return error instanceof Failure ? { id, kind: 'refused', code: error.code } : { id, kind: 'defect' };
  }
}

/** Joins the parts in memory of its own, which can move to the other thread. */
function join({ parts, sizeBytes }: InspectionJob): Buffer<ArrayBuffer> {
  const bytes = Buffer.from(new ArrayBuffer(sizeBytes));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  // Freed now, not by the garbage collector: the body is in memory once, however long the job takes.
  for (const { buffer } of parts) if (!buffer.detached) buffer.transfer(0);
  return bytes;
}
