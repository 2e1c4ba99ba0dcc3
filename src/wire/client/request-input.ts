import { UnreadBytes } from '#wire';
import { findHeadEnd, HttpError, parseRequestHead, type RequestHead } from '#wire/message';

/**
 * The bytes of a client that cannot be used yet: part of a head, a body that nobody has claimed, or pipelined
 * requests. Reads request heads from them.
 */
export class RequestInput {
  readonly #unread = new UnreadBytes();
  /** How many bytes have been searched for the end of a head. */
  #scannedBytes = 0;

  get length(): number {
    return this.#unread.length;
  }

  /**
   * Whether the bytes are part of one CRLF at most. Some clients send a CRLF after a body (RFC 9112 2.2); it begins no
   * request.
   */
  get hasOnlyLineEnd(): boolean {
    const { length } = this.#unread;
    return this.#unread.view().equals(LINE_END.subarray(0, length));
  }

  append(read: Buffer): void {
    this.#unread.append(read);
  }

  /** Reads the next head and removes it; null while it is incomplete. Throws HttpError. */
  readHead(maxHeadBytes: number): RequestHead | null {
    const bytes = this.#unread.view();
    const end = findHeadEnd(bytes, 0, this.#scannedBytes);
    if ((end === -1 ? bytes.length : end) > maxHeadBytes) throw new HttpError('head_too_large');
    if (end === -1) {
      this.#scannedBytes = bytes.length;
      return null;
    }
    const head = parseRequestHead(bytes, 0, end);
    this.clear();
    if (end < bytes.length) this.#unread.append(bytes.subarray(end));
    return head;
  }

  /** Removes all bytes and returns them. */
  takeAll(): Buffer {
    return this.#unread.takeAll();
  }

  clear(): void {
    this.#unread.clear();
    this.#scannedBytes = 0;
  }
}

const LINE_END = Buffer.from('\r\n');
