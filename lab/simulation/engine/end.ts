import { Pipe } from './pipe.ts';
import type { Owner } from './schedule.ts';

/** The codes of the system's errors that sockets have here. */
export type SocketErrorCode = 'ECONNREFUSED' | 'ECONNRESET' | 'EPIPE' | 'EADDRINUSE' | 'ENOENT';

/** What one side of a connection is told. */
export interface EndHandler {
  onData(bytes: Buffer): void;
  onEnd(): void;
  onError(code: SocketErrorCode): void;
}

/** Receives each write of a connection at the moment of the system call. */
export type WriteListener = (end: End, bytes: Buffer) => void;

/** What a side needs of its network. */
interface EndNetwork {
  readonly onWrite: WriteListener;
  failLater(end: End): void;
  forget(end: End): void;
}

const IGNORE: EndHandler = { onData: () => undefined, onEnd: () => undefined, onError: () => undefined };

/** One side of a connection. */
export class End {
  readonly owner: Owner;
  readonly localAddress: string;
  readonly remoteAddress: string;
  handler: EndHandler = IGNORE;
  /** The other side; set by `connectEnds`. */
  peer: End;
  isClosed = false;
  /** Whether its owner has it: the side that connects gets it when the other has answered. */
  isHandedOver = false;
  /** Bytes from here to the other side; set by `connectEnds`. */
  out: Pipe;
  readonly #network: EndNetwork;
  #error: SocketErrorCode | null = null;

  constructor(network: EndNetwork, owner: Owner, localAddress: string, remoteAddress: string) {
    this.#network = network;
    this.owner = owner;
    this.localAddress = localAddress;
    this.remoteAddress = remoteAddress;
    this.peer = this;
    this.out = NO_PIPE;
  }

  get hasFailed(): boolean {
    return this.#error !== null;
  }

  /** Returns an error of the system, or whether it took all bytes. `done` is called later if it did not. */
  write(bytes: Buffer, done: () => void): SocketErrorCode | boolean {
    if (this.isClosed || this.#error !== null) return 'EPIPE';
    this.#network.onWrite(this, bytes);
    if (this.peer.isClosed) {
      this.#network.failLater(this);
      return true;
    }
    return this.out.write(bytes, done);
  }

  /** Closes this direction. */
  end(): void {
    if (this.#error === null) this.out.end();
  }

  startReading(): void {
    this.peer.out.startReading();
  }

  stopReading(): void {
    this.peer.out.stopReading();
  }

  /** Closes the socket. The peer reads what was written; with unread bytes here, it gets a reset instead. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.handler = IGNORE;
    this.#network.forget(this);
    const incoming = this.peer.out;
    const hasUnread = incoming.unreadBytes > 0;
    incoming.break();
    if (this.#error !== null) return;
    if (hasUnread) this.#network.failLater(this.peer);
    else this.out.end();
  }

  /** Resets the connection: the other side fails when it learns of it. */
  reset(): void {
    if (this.isClosed || this.#error !== null) return;
    this.#error = 'ECONNRESET';
    this.out.break();
    this.peer.out.break();
    this.#network.failLater(this.peer);
  }

  fail(code: SocketErrorCode): void {
    if (this.isClosed || this.#error !== null) return;
    this.#error = code;
    this.out.break();
    this.peer.out.break();
    this.handler.onError(code);
  }
}

/** Stands for the pipe of an end until it is connected. */
const NO_PIPE: Pipe = Object.create(Pipe.prototype);
