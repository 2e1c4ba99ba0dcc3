import type { IncomingMessage } from 'node:http';
import type { SharedLimit } from '../http/shared-limit.ts';
import { Failure } from './failure.ts';

/** A request body in memory, as the chunks it came in, and its share of the budget. */
export interface HeldBody extends Disposable {
  readonly chunks: readonly Buffer[];
}

export interface ReadBodySettings {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Bytes of request bodies held at one time, over all requests of all workers. */
  readonly budget: SharedLimit;
  /** Called once the head was found acceptable, before the first byte is read: the place for a 100. */
  readonly onAccepted: () => void;
}

/**
 * Reads a whole request body into memory.
 *
 * Rejects with a Failure: `unsupported_encoding`, `request_too_large` (from Content-Length before a byte
 * is read, else when the limit is passed), `overloaded` (the budget is used up), `request_timeout`.
 * When the client goes away the promise never settles: the exchange notices by itself.
 */
export function readBody(request: IncomingMessage, settings: ReadBodySettings): Promise<HeldBody> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    return Promise.reject(new Failure('unsupported_encoding'));
  }
  if (Number(request.headers['content-length'] ?? 0) > settings.maxBytes) {
    return Promise.reject(new Failure('request_too_large'));
  }
  settings.onAccepted();
  return new Promise((resolve, reject) => {
    const { budget } = settings;
    const chunks = new ChunkList();
    let sizeBytes = 0;
    let chunkCount = 0;
    const giveBack = () => {
      budget.giveBack(sizeBytes);
      sizeBytes = 0;
    };
    const stop = () => {
      clearTimeout(deadline);
      request.off('data', onData).off('end', onEnd).off('close', onClose);
    };
    const fail = (failure: Failure) => {
      stop();
      giveBack();
      reject(failure);
    };
    const onData = (chunk: Buffer) => {
      if (sizeBytes + chunk.length > settings.maxBytes) {
        fail(new Failure('request_too_large'));
      } else if (!budget.tryTake(chunk.length)) {
        fail(new Failure('overloaded'));
      } else {
        sizeBytes += chunk.length;
        chunks.push(chunk);
        if (++chunkCount % CHUNKS_A_REST === 0) restForATurn(request);
      }
    };
    const onEnd = () => {
      stop();
      resolve({ chunks: chunks.items, [Symbol.dispose]: giveBack });
    };
    const onClose = () => {
      stop();
      giveBack();
    };
    const deadline = setTimeout(() => fail(new Failure('request_timeout')), settings.timeoutMs);
    request.on('data', onData).once('end', onEnd).once('close', onClose);
  });
}

/**
 * libuv reads a socket up to 32 times, 64 KiB each, before it turns to another. That is 32 chunks of a body as
 * clients send it, and 350,000 of one where each byte is a chunk of its own: half a second for nobody else.
 */
const CHUNKS_A_REST = 4096;

function restForATurn(request: IncomingMessage): void {
  const { socket } = request;
  if (socket.isPaused()) return;
  socket.pause();
  setImmediate(() => socket.resume());
}

/** A chunk below this is small: the object that holds it weighs as much as what it holds. */
const SMALL_CHUNK_BYTES = 256;
const MAX_SMALL_CHUNKS = 1024;

/**
 * The chunks of a body. A client may send each byte as a chunk of its own, and the objects around 32 million of
 * those take gigabytes: small chunks are joined as they come.
 */
class ChunkList {
  readonly items: Buffer[] = [];
  #smallCount = 0;

  push(chunk: Buffer): void {
    this.items.push(chunk);
    this.#smallCount = chunk.length < SMALL_CHUNK_BYTES ? this.#smallCount + 1 : 0;
    if (this.#smallCount < MAX_SMALL_CHUNKS) return;
    this.items.push(Buffer.concat(this.items.splice(-this.#smallCount)));
    this.#smallCount = 0;
  }
}

const LINGER_MS = 5_000;

/**
 * Lets a client that is still sending read the answer it already got: closing at once would reset the
 * connection and lose the answer (RFC 9112 9.6). What still comes is thrown away, for a bounded time and
 * up to a bounded size, then the connection is closed.
 */
export function lingerAfterAnswer(request: IncomingMessage, maxBytes: number): void {
  if (request.complete) return;
  let sizeBytes = 0;
  const giveUp = () => request.socket.destroy();
  const deadline = setTimeout(giveUp, LINGER_MS);
  request.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) giveUp();
  });
  request.once('close', () => clearTimeout(deadline));
  request.resume();
}
