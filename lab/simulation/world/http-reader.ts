/** A complete HTTP/1.1 message, or the part of one that has arrived. */
export interface Message {
  readonly startLine: string;
  /** By name in lower case; of repeated fields, the last. */
  readonly fields: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly isComplete: boolean;
}

type Framing =
  | { readonly kind: 'length'; left: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'close' };

/**
 * Reads HTTP/1.1 messages of well-behaved peers, independently of the gateway's own parser. Throws on anything that it
 * does not understand.
 */
export class HttpReader {
  readonly #role: 'request' | 'response';
  readonly #onMessage: (message: Message) => void;
  #unread: Buffer = Buffer.alloc(0);
  #head: Pick<Message, 'startLine' | 'fields'> | null = null;
  #framing: Framing = { kind: 'length', left: 0 };
  #body: Buffer[] = [];

  /** Reads requests, or responses to requests that are not HEAD. */
  constructor(role: 'request' | 'response', onMessage: (message: Message) => void) {
    this.#role = role;
    this.#onMessage = onMessage;
  }

  /** What has arrived of the message that is not complete; null if nothing has. */
  get partial(): Message | null {
    if (this.#head === null) return null;
    return { ...this.#head, body: Buffer.concat(this.#body), isComplete: false };
  }

  /** Whether a part of a message has arrived. */
  get hasPart(): boolean {
    return this.#head !== null || this.#unread.length > 0;
  }

  push(bytes: Buffer): void {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    while (this.#step());
  }

  /** The peer has closed its side. */
  end(): void {
    if (this.#head !== null && this.#framing.kind === 'close') this.#finish();
  }

  #step(): boolean {
    if (this.#head === null) return this.#readHead();
    if (this.#framing.kind === 'chunked') return this.#readChunk();
    if (this.#framing.kind === 'close') {
      this.#keep(this.#unread.length);
      return false;
    }
    const { left } = this.#framing;
    const size = Math.min(left, this.#unread.length);
    this.#keep(size);
    this.#framing.left -= size;
    if (this.#framing.left > 0) return false;
    this.#finish();
    return true;
  }

  #readHead(): boolean {
    const end = this.#unread.indexOf('\r\n\r\n');
    if (end === -1) return false;
    const [startLine = '', ...lines] = this.#unread.toString('latin1', 0, end).split('\r\n');
    this.#unread = this.#unread.subarray(end + 4);
    const status = this.#role === 'response' ? Number(startLine.split(' ')[1]) : 200;
    if (!(status >= 100)) throw new Error(`not a response: ${startLine}`);
    // Informational.
    if (status < 200) return true;
    const fields = new Map(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
      }),
    );
    this.#head = { startLine, fields };
    const length = fields.get('content-length');
    if (fields.get('transfer-encoding') === 'chunked') this.#framing = { kind: 'chunked' };
    else if (length !== undefined) this.#framing = { kind: 'length', left: Number(length) };
    else this.#framing = this.#role === 'request' ? { kind: 'length', left: 0 } : { kind: 'close' };
    return true;
  }

  #readChunk(): boolean {
    const lineEnd = this.#unread.indexOf('\r\n');
    if (lineEnd === -1) return false;
    const text = this.#unread.toString('latin1', 0, lineEnd);
    if (!/^[0-9a-fA-F]+$/.test(text)) throw new Error(`not a chunk size: ${JSON.stringify(text)}`);
    const size = Number.parseInt(text, 16);
    const end = lineEnd + 2 + size + 2;
    if (this.#unread.length < end) {
      return false;
    }
    if (this.#unread.toString('latin1', end - 2, end) !== '\r\n') throw new Error('a chunk has another size');
    this.#body.push(this.#unread.subarray(lineEnd + 2, end - 2));
    this.#unread = this.#unread.subarray(end);
    if (size === 0) this.#finish();
    return true;
  }

  #keep(size: number): void {
    if (size === 0) return;
    this.#body.push(this.#unread.subarray(0, size));
    this.#unread = this.#unread.subarray(size);
  }

  #finish(): void {
    const head = this.#head;
    const body = Buffer.concat(this.#body);
    this.#head = null;
    this.#body = [];
    if (head !== null) this.#onMessage({ ...head, body, isComplete: true });
  }
}

/** The status of a response. */
export function statusOf({ startLine }: Pick<Message, 'startLine'>): number {
  return Number(startLine.split(' ')[1]);
}
