import type { HttpExchange } from '../../http/http-exchange.ts';
import type { RequestBodySink } from '../../http/request-body.ts';
import type { SharedLimit } from '../../http/shared-limit.ts';
import type { Abandonable, Exchange } from '../exchange.ts';
import { Failure, type FailureCode } from '../failure.ts';

/** A request body in memory, as the chunks it came in, and its share of the budget. */
export interface HeldBody extends Disposable {
  readonly chunks: readonly Buffer[];
  readonly sizeBytes: number;
  /** Lets go of the bytes and gives back their share: at once, and not only at the end. */
  release(): void;
}

export interface ReadBodySettings {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Bytes of request bodies held at one time, over all requests of all workers. */
  readonly budget: SharedLimit;
}

/**
 * Reads a whole request body into memory: at once, if it came with its head.
 *
 * Throws, or rejects with, a Failure: `unsupported_encoding`, `request_too_large` (from Content-Length before a byte
 * is read, else when the limit is passed), `overloaded` (the budget is used up), `request_timeout`.
 * When the client goes away the promise never settles: the exchange notices by itself.
 */
export function readBody(exchange: Exchange, settings: ReadBodySettings): HeldBody | Promise<HeldBody> {
  const { fields, framing } = exchange.head;
  const encoding = fields.get('content-encoding');
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Failure('unsupported_encoding');
  }
  if (framing.kind === 'length' && framing.bytes > settings.maxBytes) throw new Failure('request_too_large');
  const collector = new BodyCollector(exchange.http, settings, framing.kind === 'length' ? framing.bytes : 0);
  exchange.attempt = collector;
  exchange.http.readBody(collector, settings.timeoutMs);
  return collector.take(exchange);
}

/** Up to this size a body may use all of the budget; larger ones leave a part of it to others. */
const SMALL_BODY_BYTES = 256 * 1024;
const SHARE_FOR_SMALL = 1 / 8;

/**
 * The event loop reads a socket up to 32 times, 64 KiB each, before it turns to another: 30 ms where each byte is a
 * chunk of its own.
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
          exchange.attempt = null;
          if (this.#failure === null) resolve(this);
          else reject(new Failure(this.#failure));
        };
      });
    }
    exchange.attempt = null;
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
      // A view keeps all of its read in memory: what is much smaller is copied.
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

  [Symbol.dispose](): void {
    this.release();
  }

  #fail(code: FailureCode): void {
    this.release();
    this.#state = 'failed';
    this.#failure = code;
    this.#http.stopReadingBody();
    this.#onSettled?.();
  }
}

/** A chunk below this is small: the object that holds it weighs as much as what it holds. */
const SMALL_CHUNK_BYTES = 256;
const MAX_SMALL_CHUNKS = 1024;

/**
 * The chunks of a body. A client may send each byte by itself, and the objects around 32 million of those take
 * gigabytes: small chunks are joined as they come.
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
