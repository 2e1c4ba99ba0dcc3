/** What is wrong with a message on the wire. `closed_early`: the connection ended before the message did. */
export type HttpFault = 'malformed' | 'head_too_large' | 'closed_early';

const MESSAGES: Record<HttpFault, string> = {
  malformed: 'The message is not valid HTTP/1.1.',
  head_too_large: 'The head of the message is too large.',
  closed_early: 'The connection ended before the message was complete.',
};

/** The error for a message that cannot be read. Its text is a constant and never contains bytes of the message. */
export class HttpError extends Error {
  readonly code: HttpFault;

  constructor(code: HttpFault) {
    super(MESSAGES[code]);
    this.name = 'HttpError';
    this.code = code;
  }
}
