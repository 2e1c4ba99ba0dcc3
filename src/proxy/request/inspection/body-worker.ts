import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { findRecordedEndpoint } from '../../endpoints/table.ts';
import { Failure, type FailureCode } from '../../failure.ts';
import {
  createPrefixHasher,
  type PrefixHasher,
  type PrefixHashSettings,
} from '../../record/prefix-hashes.ts';
import type { ModelAliases } from '../model-aliases.ts';
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

/** Something to inspect. The larger it is, the longer it takes. */
interface Sized {
  readonly sizeBytes: number;
}

/** How a queue receives and runs jobs. */
interface InspectionSteps<Job extends Sized> {
  /** The next job that has arrived; undefined if there is none. */
  receive(): Job | undefined;
  /**
   * Runs a job. It calls `giveWay` now and then, where other jobs may run; the call returns when they are done.
   * `depth`: how many jobs have given way to this one.
   */
  carryOut(job: Job, giveWay: () => void, depth: number): void;
}

/** A job gives way to jobs of at most this fraction of its size. */
const MUCH_SMALLER = 0.5;

/**
 * The jobs of a thread. The smallest runs first, and a running job gives way to much smaller ones, so that no request
 * waits long for a larger one. A job makes progress between two yields, so that it ends however many others arrive.
 */
export class InspectionQueue<Job extends Sized> {
  readonly #steps: InspectionSteps<Job>;
  /** The smallest first; jobs of the same size in the order of arrival. */
  readonly #waiting: Job[] = [];
  #depth = 0;

  constructor(steps: InspectionSteps<Job>) {
    this.#steps = steps;
  }

  /** Runs a job and all that arrive in the meantime. */
  run(job: Job): void {
    this.#add(job);
    this.#runUpTo(Number.POSITIVE_INFINITY);
  }

  #runUpTo(maxBytes: number): void {
    for (;;) {
      this.#receiveAll();
      const [next] = this.#waiting;
      if (next === undefined || next.sizeBytes > maxBytes) return;
      this.#waiting.shift();
      const giveWay = () => this.#runUpTo(next.sizeBytes * MUCH_SMALLER);
      this.#steps.carryOut(next, giveWay, this.#depth++);
      this.#depth--;
    }
  }

  #receiveAll(): void {
    for (let job = this.#steps.receive(); job !== undefined; job = this.#steps.receive()) this.#add(job);
  }

  #add(job: Job): void {
    const larger = this.#waiting.findIndex(({ sizeBytes }) => sizeBytes > job.sizeBytes);
    this.#waiting.splice(larger === -1 ? this.#waiting.length : larger, 0, job);
  }
}
