import type { OnReadOpts } from 'node:net';

/** The most that Node reads at a time. */
const READ_BYTES = 64 * 1024;

/** The reads of one socket. */
export interface SocketReads {
  /** The `onread` option of the socket. */
  readonly option: OnReadOpts;
  /** Receives each read and owns its bytes. Set it when the socket is connected, before it reads. */
  listener: ((read: Buffer) => void) | null;
}

/**
 * One buffer that many sockets read into. Each read is copied out of it. By default Node allocates 64 KiB for every
 * read, frees the unused rest, and passes the read through a stream. For reads of a few KB that costs more than the
 * copy.
 */
export class SharedReads {
  readonly #memory = Buffer.allocUnsafeSlow(READ_BYTES);

  /** Creates the reads of a socket that is not connected yet. */
  forSocket(): SocketReads {
    const memory = this.#memory;
    const reads: SocketReads = {
      listener: null,
      option: {
        buffer: memory,
        callback(sizeBytes) {
          const read = Buffer.allocUnsafe(sizeBytes);
          memory.copy(read, 0, 0, sizeBytes);
          reads.listener?.(read);
          return true;
        },
      },
    };
    return reads;
  }
}

/**
 * A copy of bytes of a read, for as long as the owner needs it. It is not in Node's pool, because a small part that is
 * kept keeps 64 KiB of the pool alive.
 */
export function copyToKeep(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
