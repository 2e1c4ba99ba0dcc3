import type { OnReadOpts } from 'node:net';

/** What Node reads at most at one time. */
const READ_BYTES = 64 * 1024;

/** What one socket reads. */
export interface SocketReads {
  /** The `onread` option of the socket. */
  readonly option: OnReadOpts;
  /** Receives each read. The bytes belong to the listener. Set it when the socket is connected, before it reads. */
  listener: ((read: Buffer) => void) | null;
}

/**
 * One piece of memory that many sockets read into, one after another. Each read is copied out of it. Node allocates
 * 64 KiB for every read and gives the rest back, and passes the read through a stream: for reads of some KB that
 * costs more than the copy.
 */
export class SharedReads {
  readonly #memory = Buffer.allocUnsafeSlow(READ_BYTES);

  /** The reads of a socket that is not connected yet. */
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
