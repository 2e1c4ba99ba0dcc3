import { UnreadBytes } from '#wire';
import { findHeadEnd, HttpError, parseResponseHead, type ResponseHead } from '#wire/message';

/** The same limit as in undici and node:http. Engines send far less. */
const MAX_HEAD_BYTES = 16 * 1024;
/** The most informational responses to one request (RFC 9110 15.2). */
const MAX_INFORMATIONAL = 16;

/** Reads the heads of responses from reads that may be split anywhere, and skips informational ones. */
export class ResponseHeadReader {
  readonly #unread = new UnreadBytes();
  #method = '';
  #informationalCount = 0;
  #end = 0;

  /** Begins the response to a request with this method. */
  start(method: string): void {
    this.#method = method;
    this.#informationalCount = 0;
  }

  /** Returns the final head, or null while it is incomplete. Throws HttpError. */
  read(read: Buffer): ResponseHead | null {
    const scanFrom = this.#unread.length;
    this.#unread.append(read);
    const bytes = this.#unread.view();
    let start = 0;
    let from = scanFrom;
    for (;;) {
      const end = findHeadEnd(bytes, start, from);
      if ((end === -1 ? bytes.length : end) - start > MAX_HEAD_BYTES) throw new HttpError('head_too_large');
      if (end === -1) {
        if (start === 0) return null;
        this.#unread.clear();
        this.#unread.append(bytes.subarray(start));
        return null;
      }
      const head = parseResponseHead(bytes, start, end, this.#method);
      if (head.status >= 200) {
        this.#end = end;
        return head;
      }
      this.#informationalCount++;
      // The gateway never asks to switch protocols.
      if (head.status === 101 || this.#informationalCount > MAX_INFORMATIONAL)
        throw new HttpError('malformed');
      start = from = end;
    }
  }

  /** The offset in `takeAll` at which the final head ends. */
  get end(): number {
    return this.#end;
  }

  /** Removes all bytes and returns them: those of the head and those after it. */
  takeAll(): Buffer {
    return this.#unread.takeAll();
  }
}
