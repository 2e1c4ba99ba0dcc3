import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { EventLog } from './event-log.ts';

/** One response, byte for byte. */
export interface RawResponse {
  /** For example `HTTP/1.1 200 OK`. */
  readonly statusLine: string;
  readonly status: number;
  /** Names and values in turn, read as latin-1. */
  readonly rawHeaders: readonly string[];
  /** The body without its framing. */
  readonly body: Buffer;
  /** The pieces of a chunked body: one for each write of the server. Else the body, if it has any. */
  readonly pieces: readonly Buffer[];
  /** The trailer fields of a chunked body: names and values in turn. */
  readonly rawTrailers: readonly string[];
  /** Whether the body came to the end that its framing promised. */
  readonly isComplete: boolean;
  /** Every value of a field, in order; its name in any case. */
  header(name: string): readonly string[];
}

/** The values of a field in a flat list of names and values. */
export function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  const wanted = name.toLowerCase();
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === wanted);
}

/** A connection that sends exactly the bytes it is told to, and reads exactly those that come. */
export class RawConnection implements Disposable {
  readonly socket: Socket;
  readonly #arrivals = new EventLog<number>();
  /** The reads that nobody has taken yet. They are joined when somebody looks at them, not at each read. */
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      this.#unread.push(chunk);
      this.#unreadBytes += chunk.length;
      this.#arrivals.push(chunk.length);
    });
    const onEnd = () => {
      this.#isClosed = true;
      this.#arrivals.wake();
    };
    socket.once('end', onEnd).once('close', onEnd);
  }

  /** Connects to the host and port of a URL; over TLS with `tls`. Rejects if the handshake fails. */
  static async open(url: string, tls: ConnectionOptions | null = null): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    // Half-open: the server's FIN is seen as an end of input, and the test decides when to close.
    const address = { host: hostname, port: Number(port), allowHalfOpen: true };
    const socket = tls === null ? connect(address) : connectTls({ ...address, ...tls });
    await once(socket, tls === null ? 'connect' : 'secureConnect');
    return new RawConnection(socket);
  }

  /** Sends bytes; text is latin-1, so that one character is one byte. */
  write(bytes: string | Uint8Array): void {
    if (typeof bytes === 'string') this.socket.write(bytes, 'latin1');
    else this.socket.write(bytes);
  }

  /** Whether the server has closed the connection. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when bytes that were not read yet contain this text. */
  untilBuffered(text: string): Promise<void> {
    return this.#until(() => this.#received.includes(text));
  }

  /** The next response on this connection. Resolves with what there is when the server closes first. */
  async readResponse(): Promise<RawResponse> {
    const head = await this.#readHead();
    // No body follows these heads, whatever fields they have (RFC 9112 6.3).
    const isInformational = head.status >= 100 && head.status < 200;
    if (isInformational || head.status === 204 || head.status === 304) return toResponse(head, [], true);
    if (/\bchunked\b/i.test(valuesOf(head.rawHeaders, 'transfer-encoding').join())) {
      return await this.#readChunked(head);
    }
    const [length] = valuesOf(head.rawHeaders, 'content-length');
    await this.#until(() => length !== undefined && this.#unreadBytes >= Number(length));
    const body = this.#take(Math.min(this.#unreadBytes, Number(length ?? Number.POSITIVE_INFINITY)));
    const isComplete = length === undefined || body.length === Number(length);
    return toResponse(head, body.length > 0 ? [body] : [], isComplete);
  }

  /** The next piece of a chunked response whose head was read with `readHead`; null at its end or a break. */
  async readPiece(): Promise<Buffer | null> {
    const line = await this.#takeLine();
    const size = line === null ? 0 : Number.parseInt(line, 16);
    if (size === 0) return null;
    await this.#until(() => this.#unreadBytes >= size + 2);
    if (this.#unreadBytes < size + 2) return null;
    const piece = this.#take(size);
    this.#take(2);
    return piece;
  }

  /** Only the head of the next response; its body is read with `readPiece`. */
  async readHead(): Promise<RawResponse> {
    return toResponse(await this.#readHead(), [], true);
  }

  /** All bytes up to the server's closing of the connection. */
  async readToClose(): Promise<Buffer> {
    await this.#arrivals.until(() => this.#isClosed);
    return this.#take(this.#unreadBytes);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  async #readHead(): Promise<Head> {
    await this.#until(() => this.#received.includes('\r\n\r\n'));
    const end = this.#received.indexOf('\r\n\r\n');
    const text = this.#take(end === -1 ? this.#unreadBytes : end + 4).toString('latin1');
    const [statusLine = '', ...lines] = text.trimEnd().split('\r\n');
    return { statusLine, status: Number(statusLine.split(' ')[1] ?? 0), rawHeaders: toFields(lines) };
  }

  async #readChunked(head: Head): Promise<RawResponse> {
    const pieces: Buffer[] = [];
    for (;;) {
      const line = await this.#takeLine();
      const size = Number.parseInt(line ?? '', 16);
      if (Number.isNaN(size)) return toResponse(head, pieces, false);
      if (size === 0) break;
      await this.#until(() => this.#unreadBytes >= size + 2);
      const piece = this.#take(Math.min(size, this.#unreadBytes));
      pieces.push(piece);
      if (piece.length < size) return toResponse(head, pieces, false);
      this.#take(2);
    }
    // Trailer fields up to the blank line.
    const trailers: string[] = [];
    for (let line = await this.#takeLine(); line !== null && line !== ''; line = await this.#takeLine()) {
      trailers.push(line);
    }
    return toResponse(head, pieces, true, toFields(trailers));
  }

  async #takeLine(): Promise<string | null> {
    await this.#until(() => this.#received.includes('\r\n'));
    const end = this.#received.indexOf('\r\n');
    if (end === -1) return null;
    return this.#take(end + 2)
      .toString('latin1')
      .trimEnd();
  }

  #until(isMet: () => boolean): Promise<void> {
    return this.#arrivals.until(() => this.#isClosed || isMet());
  }

  /** What has come and was not taken, in one piece. */
  get #received(): Buffer {
    const [first = Buffer.alloc(0), ...others] = this.#unread;
    if (others.length === 0) return first;
    const joined = Buffer.concat(this.#unread);
    this.#unread = [joined];
    return joined;
  }

  #take(bytes: number): Buffer {
    const received = this.#received;
    const left = received.subarray(bytes);
    this.#unread = [left];
    this.#unreadBytes = left.length;
    return received.subarray(0, bytes);
  }
}

interface Head {
  readonly statusLine: string;
  readonly status: number;
  readonly rawHeaders: readonly string[];
}

/** Names and values in turn of field lines. */
function toFields(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
}

function toResponse(
  head: Head,
  pieces: readonly Buffer[],
  isComplete: boolean,
  rawTrailers: readonly string[] = [],
): RawResponse {
  return {
    ...head,
    pieces,
    rawTrailers,
    body: Buffer.concat(pieces),
    isComplete,
    header: (name) => valuesOf(head.rawHeaders, name),
  };
}

/** Sends bytes on a connection of their own and reads one response. */
export async function exchangeRaw(url: string, bytes: string | Uint8Array): Promise<RawResponse> {
  using connection = await RawConnection.open(url);
  connection.write(bytes);
  return await connection.readResponse();
}

/** The bytes of a POST with a Content-Length. `fields` are whole lines without their CRLF. */
export function postBytes(path: string, body: string | Uint8Array, fields: readonly string[] = []): Buffer {
  const payload = typeof body === 'string' ? Buffer.from(body) : body;
  const lines = [`POST ${path} HTTP/1.1`, 'Host: gateway', `Content-Length: ${payload.length}`, ...fields];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), payload]);
}

/** One chunk of a body (RFC 9112 7.1). */
export function toChunk(piece: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
}

/** A body in chunks, one after the other, with what ends it. `toSize` says how long a chunk is, from where it begins. */
export function toChunks(body: Buffer, toSize: (at: number, index: number) => number): readonly Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const piece = body.subarray(at, at + toSize(at, chunks.length));
    chunks.push(toChunk(piece));
    at += piece.length;
  }
  return [...chunks, Buffer.from('0\r\n\r\n')];
}
