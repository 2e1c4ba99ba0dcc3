import type { Worker } from 'node:worker_threads';
import { startThread } from '#base/embedded';
import { allowAtMost, MemberLimitError } from '#json';
import type { RecordedEndpoint } from '../../endpoints/recorded-endpoint.ts';
import { Failure } from '../../failure.ts';
import { createPrefixHasher, type PrefixHashSettings } from '../../record/prefix-hashes.ts';
import type { ModelAliases } from '../model-aliases.ts';
import type { InspectionJob, InspectionReply } from './body-worker.ts';
import { type RequestFacts, readRequestFacts } from './request-facts.ts';
import { describeRequestText, type RequestTextDescription } from './request-text.ts';

/** A request body that is a JSON object. */
export interface InspectedBody {
  readonly bytes: Buffer;
  readonly facts: RequestFacts;
  /** Describes its text for the record. For a small body this reads the text: call it after the request is sent. */
  describeText(): RequestTextDescription;
}

/** Reads request bodies without stalling other requests. */
export interface BodyInspector {
  /**
   * Reads a body, given as the chunks in which it came. A body that takes little time is read directly. Any other goes
   * to a thread with the memory of its chunks, which are good for nothing afterwards.
   *
   * Throws, or rejects with, the Failures of `readRequestFacts`. Any other error is a defect of ours.
   */
  inspect(
    chunks: readonly Buffer[],
    endpoint: RecordedEndpoint,
    aliases?: ModelAliases,
  ): InspectedBody | Promise<InspectedBody>;
  /** Ends the thread if there is one. */
  close(): Promise<void>;
}

/**
 * Bodies up to this size, with at most this many members and elements on all levels, are read directly. A text of
 * 100 KB takes 0.05 ms to read and 0.15 ms to hash, and half a millisecond more if every other character is an escape.
 * A member takes up to 0.1 µs. The way to the thread and back takes longer (docs/decisions/0019).
 */
const INLINE_BYTES = 128 * 1024;
const FEW_MEMBERS = allowAtMost(4096);

/** Creates the inspector of one listener. Its thread starts when the first body needs it. */
export function createBodyInspector(settings: PrefixHashSettings): BodyInspector {
  const hasher = createPrefixHasher(settings);
  let thread: InspectionThread | null = null;
  return {
    inspect(chunks, endpoint, aliases = null) {
      const sizeBytes = sizeOf(chunks);
      const body = sizeBytes <= INLINE_BYTES ? inOnePiece(chunks, sizeBytes) : null;
      const facts = body && readIfFew(body, endpoint, aliases);
      if (body !== null && facts !== null) {
        return { bytes: body, facts, describeText: () => describeRequestText(body, facts, endpoint, hasher) };
      }
      if (thread === null || thread.hasEnded) thread = new InspectionThread(settings);
      return thread.inspect(body === null ? chunks : [body], sizeBytes, endpoint, aliases);
    },
    async close() {
      await thread?.close();
    },
  };
}

/** Returns null if the body has too many members to be read on this thread. */
function readIfFew(body: Buffer, endpoint: RecordedEndpoint, aliases: ModelAliases): RequestFacts | null {
  try {
    return readRequestFacts(body, endpoint, aliases, FEW_MEMBERS);
  } catch (error) {
    if (error instanceof MemberLimitError) return null;
    throw error;
  }
}

function inOnePiece(chunks: readonly Buffer[], sizeBytes: number): Buffer {
  const [only] = chunks;
  return only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks, sizeBytes);
}

interface PendingInspection {
  readonly resolve: (body: InspectedBody) => void;
  readonly reject: (error: Error) => void;
}

/** The thread that reads the other bodies, the smallest first. */
class InspectionThread {
  hasEnded = false;
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingInspection>();
  #lastId = 0;

  constructor({ salt, blockChars, maxBlocks }: PrefixHashSettings) {
    this.#worker = startThread('body-worker', import.meta, {
      workerData: { salt: Uint8Array.from(salt), blockChars, maxBlocks },
    });
    // The open connections of waiting requests keep the process alive.
    this.#worker.unref();
    this.#worker.on('message', (reply: InspectionReply) => this.#settle(reply));
    this.#worker.on('error', () => this.#end());
    this.#worker.on('exit', () => this.#end());
  }

  inspect(
    chunks: readonly Buffer[],
    sizeBytes: number,
    endpoint: RecordedEndpoint,
    aliases: ModelAliases,
  ): Promise<InspectedBody> {
    const id = ++this.#lastId;
    const parts = chunks.map(toOwnBytes);
    const job: InspectionJob = { id, path: endpoint.path, aliases, sizeBytes, parts };
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage(job, [...new Set(parts.map(({ buffer }) => buffer))]);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #settle(reply: InspectionReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    switch (reply.kind) {
      case 'inspected': {
        const { buffer, facts, text } = reply;
        pending?.resolve({ bytes: Buffer.from(buffer), facts, describeText: () => text });
        break;
      }
      case 'refused':
        pending?.reject(new Failure(reply.code));
        break;
      case 'defect':
        pending?.reject(new Error('the inspection of a request body failed'));
        break;
    }
  }

  /** Requests that wait for this thread fail. The next large body gets a new thread. */
  #end(): void {
    this.hasEnded = true;
    for (const { reject } of this.#pending.values()) reject(new Error('the inspection thread ended'));
    this.#pending.clear();
  }
}

/** The bytes in memory of their own, which can move to another thread. Copies them if they share their memory. */
function toOwnBytes(chunk: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer } = chunk;
  const ownsMemory = buffer instanceof ArrayBuffer && chunk.byteLength === buffer.byteLength;
  return ownsMemory ? new Uint8Array(buffer) : Uint8Array.from(chunk);
}

function sizeOf(chunks: readonly Buffer[]): number {
  let sizeBytes = 0;
  for (const { length } of chunks) sizeBytes += length;
  return sizeBytes;
}
