import type { SharedLimit } from '#shared-memory';
import type { HttpExchange, RequestBodySink } from '#wire/client';
import type { Abandonable, Exchange } from '../exchange.ts';
import { Failure, type FailureCode } from '../failure.ts';

/** A request body in memory, as the chunks in which it came, and its share of the budget. */
export interface HeldBody {
  readonly chunks: readonly Buffer[];
  readonly sizeBytes: number;
  /** Drops the bytes and gives back their share. May be called more than once. */
  release(): void;
}

export interface ReadBodySettings {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Bounds the bytes of request bodies held at one time, over all requests of all workers. */
  readonly budget: SharedLimit;
}

/**
 * Reads a whole request body into memory. Returns it directly if it came with its head.
 *
 * Throws, or rejects with, a Failure: `unsupported_encoding`, `request_too_large` (from Content-Length before a byte
 * is read, else when the limit is exceeded), `overloaded` (the budget is used up), `request_timeout`.
 * If the client leaves the promise never settles: the exchange ends by itself.
 */
export function readBody(exchange: Exchange, settings: ReadBodySettings): HeldBody | Promise<HeldBody> {
  const { fields, framing } = exchange.head;
  const encoding = fields.get('content-encoding');
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure('unsupported_encoding');
  }
  if (framing.kind === 'length' && framing.bytes > settings.maxBytes) throw new Failure('request_too_large');
  const collector = new BodyCollector(exchange.http, settings, framing.kind === 'length' ? framing.bytes : 0);
  exchange.startWork(collector);
  exchange.http.readBody(collector, settings.timeoutMs);
  return collector.take(exchange);
}

/** Bodies up to this size may use all of the budget. Larger ones leave a part of it to others. */
const SMALL_BODY_BYTES = 256 * 1024;
const SHARE_FOR_SMALL = 1 / 8;

/**
 * The event loop reads a socket up to 32 times, 64 KiB each, before it turns to another: 30 ms if each byte is a chunk
 * of its own.
 */
const READS_PER_TURN = 8;

class BodyCollector implements RequestBodySink, Abandonable, HeldBody {
  readonly #http: HttpExchange;
  readonly #settings: ReadBodySettings;
  readonly #announcedBytes: number;
  #list = new ChunkList();
  #state: 'reading' | 'complete' | 'failed' | 'released' = 'reading';
  #failure: FailureCode | null = null;
  #sizeBytes = 0;
  #readCount = 0;
  #onSettled: (() => void) | null = null;

  constructor(http: HttpExchange, settings: ReadBodySettings, announcedBytes: number) {
    this.#http = http;
    this.#settings = settings;
    this.#announcedBytes = announcedBytes;
  }

  get chunks(): readonly Buffer[] {
    return this.#list.items;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The body, or a promise of it. */
  take(exchange: Exchange): HeldBody | Promise<HeldBody> {
    if (this.#state === 'reading') {
      return new Promise((resolve, reject) => {
        this.#onSettled = () => {
          exchange.endWork();
          if (this.#failure === null) resolve(this);
          else reject(new Failure(this.#failure));
        };
      });
    }
    exchange.endWork();
    if (this.#failure !== null) throw new Failure(this.#failure);
    return this;
  }

  onData(view: Buffer): void {
    if (this.#state !== 'reading') return;
    const { budget, maxBytes } = this.#settings;
    const sizeBytes = this.#sizeBytes + view.length;
    const isLarge = Math.max(sizeBytes, this.#announcedBytes) > SMALL_BODY_BYTES;
    if (sizeBytes > maxBytes) {
      this.#fail('request_too_large');
    } else if (!budget.tryAcquire(view.length, isLarge ? SHARE_FOR_SMALL : 0)) {
      this.#fail('overloaded');
    } else {
      this.#sizeBytes = sizeBytes;
      // A view stays good, but keeps its whole read in memory: a much smaller one is copied.
      this.#list.push(view.length * 2 < view.buffer.byteLength ? Buffer.from(view) : view);
      if (++this.#readCount % READS_PER_TURN === 0) this.#http.yieldToOtherSockets();
    }
  }

  onEnd(): void {
    if (this.#state !== 'reading') return;
    this.#state = 'complete';
    this.#onSettled?.();
  }

  onTimeout(): void {
    if (this.#state === 'reading') this.#fail('request_timeout');
  }

  abandon(): void {
    this.release();
  }

  release(): void {
    if (this.#state === 'released' || this.#state === 'failed') return;
    this.#state = 'released';
    this.#settings.budget.release(this.#sizeBytes);
    this.#list = new ChunkList();
  }

  #fail(code: FailureCode): void {
    this.release();
    this.#state = 'failed';
    this.#failure = code;
    this.#http.stopReadingBody();
    this.#onSettled?.();
  }
}

/** A smaller chunk takes less memory than the object that holds it. */
const SMALL_CHUNK_BYTES = 256;
const MAX_SMALL_CHUNKS = 1024;

/**
 * The chunks of a body. Small chunks are joined as they come: a client may send each byte in its own chunk, and 32
 * million chunk objects take gigabytes.
 */
export class ChunkList {
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
