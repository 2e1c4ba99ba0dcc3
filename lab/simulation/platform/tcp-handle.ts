import type { End, EndHandler, SocketErrorCode } from '../engine/end.ts';
import { END_OF_FILE, setRead, setWritten, toErrorNumber } from './stream-state.ts';
import type { SimulatedThread } from './thread.ts';

/** The request of a connection attempt, as `net.Socket` makes it. */
interface ConnectRequest {
  oncomplete(
    status: number,
    handle: TcpHandle,
    req: ConnectRequest,
    readable: boolean,
    writable: boolean,
  ): void;
}

interface ShutdownRequest {
  oncomplete(status: number): void;
}

/** The request of a write that is under way, as Node's own handles return it. */
interface WriteRequest {
  readonly writeStatus: null;
  oncomplete?(status: number): void;
}

/**
 * The handle of a socket. Node's own `net.Socket` runs on top of it, as it does on the handles of the system: streams,
 * half-open connections, back-pressure and the order of events are Node's code, not a copy of it.
 */
export class TcpHandle implements EndHandler {
  reading = false;
  bytesRead = 0;
  bytesWritten = 0;
  /** Set by `net.Socket`. */
  onread: ((buffer?: ArrayBuffer) => void) | undefined;
  readonly #thread: SimulatedThread;
  #end: End | null = null;
  #isClosed = false;
  #userBuffer: Uint8Array | null = null;

  constructor(thread: SimulatedThread, end: End | null = null) {
    this.#thread = thread;
    if (end !== null) this.#use(end);
  }

  // Called by net.Socket.

  connect(request: ConnectRequest, address: string, port?: number): number {
    const complete = (status: number) => request.oncomplete(status, this, request, true, true);
    const to = port === undefined ? this.#thread.machine.toSocketAddress(address) : `${address}:${port}`;
    if (to === null) {
      this.#thread.later('connect', 0, () => complete(toErrorNumber('ENOENT')));
      return 0;
    }
    const { network, host } = this.#thread.machine;
    network.connect(host, to, this.#thread, (error, end) => {
      if (this.#isClosed) end?.close();
      else if (end === null) complete(toErrorNumber(error ?? 'ECONNRESET'));
      else {
        this.#use(end);
        complete(0);
      }
    });
    return 0;
  }

  readStart(): number {
    this.reading = true;
    this.#end?.startReading();
    return 0;
  }

  readStop(): number {
    this.reading = false;
    this.#end?.stopReading();
    return 0;
  }

  useUserBuffer(buffer: Uint8Array): void {
    this.#userBuffer = buffer;
  }

  writeBuffer(_request: null, bytes: Uint8Array): number | WriteRequest {
    return this.#write(Buffer.from(bytes));
  }

  writeLatin1String(_request: null, text: string): number | WriteRequest {
    return this.#write(Buffer.from(text, 'latin1'));
  }

  writeUtf8String(_request: null, text: string): number | WriteRequest {
    return this.#write(Buffer.from(text, 'utf8'));
  }

  writeAsciiString(_request: null, text: string): number | WriteRequest {
    return this.#write(Buffer.from(text, 'latin1'));
  }

  writev(_request: null, chunks: readonly unknown[], allBuffers: boolean): number | WriteRequest {
    if (allBuffers) return this.#write(Buffer.concat(chunks as readonly Uint8Array[]));
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < chunks.length; at += 2) {
      const chunk = chunks[at] as string | Uint8Array;
      pieces.push(typeof chunk === 'string' ? Buffer.from(chunk, chunks[at + 1] as BufferEncoding) : chunk);
    }
    return this.#write(Buffer.concat(pieces));
  }

  shutdown(request: ShutdownRequest): number {
    if (this.#end === null) return toErrorNumber('ENOTCONN');
    this.#end.end();
    this.#thread.later('shutdown', 0, () => request.oncomplete(0));
    return 0;
  }

  close(done?: () => void): void {
    this.#isClosed = true;
    this.#end?.close();
    this.#thread.later('close', 0, () => done?.());
  }

  reset(done: () => void): number {
    this.#end?.reset();
    this.close(done);
    return 0;
  }

  getpeername(out: Record<string, unknown>): number {
    return toName(out, this.#end?.remoteAddress);
  }

  getsockname(out: Record<string, unknown>): number {
    return toName(out, this.#end?.localAddress);
  }

  /** 0: no asynchronous context of its own. */
  getAsyncId(): number {
    return 0;
  }

  setNoDelay(): number {
    return 0;
  }

  setKeepAlive(): number {
    return 0;
  }

  ref(): void {}

  unref(): void {}

  // Called by the network.

  onData(bytes: Buffer): void {
    this.bytesRead += bytes.length;
    const buffer = this.#userBuffer;
    if (buffer === null) {
      setRead(bytes.length);
      this.onread?.(new Uint8Array(bytes).buffer);
      return;
    }
    for (let at = 0; at < bytes.length; at += buffer.length) {
      const part = bytes.subarray(at, at + buffer.length);
      buffer.set(part);
      setRead(part.length);
      this.onread?.();
    }
  }

  onEnd(): void {
    setRead(END_OF_FILE);
    this.onread?.();
  }

  onError(code: SocketErrorCode): void {
    // A socket that does not read learns of it when it reads or writes.
    setRead(toErrorNumber(code));
    this.onread?.();
  }

  #use(end: End): void {
    this.#end = end;
    end.handler = this;
    if (this.reading) end.startReading();
  }

  #write(bytes: Buffer): number | WriteRequest {
    setWritten(bytes.length, false);
    if (this.#end === null || this.#isClosed) return toErrorNumber('EBADF');
    const request: WriteRequest = { writeStatus: null };
    const taken = this.#end.write(bytes, () =>
      this.#thread.later('written', 0, () => request.oncomplete?.(0)),
    );
    if (typeof taken === 'string') return toErrorNumber(taken);
    this.bytesWritten += bytes.length;
    setWritten(bytes.length, !taken);
    return taken ? 0 : request;
  }
}

function toName(out: Record<string, unknown>, address: string | undefined): number {
  const colon = address?.lastIndexOf(':') ?? -1;
  if (address === undefined || colon === -1) return toErrorNumber('ENOTCONN');
  Object.assign(out, {
    address: address.slice(0, colon),
    port: Number(address.slice(colon + 1)),
    family: 'IPv4',
  });
  return 0;
}
