/** What is wrong with a message on the wire. `closed_early`: it ended before it was whole. */
export type HttpFault = 'malformed' | 'head_too_large' | 'closed_early';

const MESSAGES: Record<HttpFault, string> = {
  malformed: 'The message is not valid HTTP/1.1.',
  head_too_large: 'The head of the message is too large.',
  closed_early: 'The connection ended before the message was whole.',
};

/** A message that cannot be read. Its text is a constant: it never holds bytes of the message. */
export class HttpError extends Error {
  readonly code: HttpFault;

  constructor(code: HttpFault) {
    super(MESSAGES[code]);
    this.name = 'HttpError';
    this.code = code;
  }
}
