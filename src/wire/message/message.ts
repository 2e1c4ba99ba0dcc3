/*
 * The syntax of HTTP/1.1, as RFC 9112 has it: heads and bodies read strictly from bytes, messages written in one piece.
 *
 * It never knows a socket, nor which side of it this is.
 * Begin with head.ts and body-reader.ts.
 */

export { BodyReader, type BodySink } from './body-reader.ts';
export { Fields } from './fields.ts';
export {
  type Framing,
  findHeadEnd,
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from './head.ts';
export { HttpError } from './http-error.ts';
export { sizeOf, writeMessage } from './write-message.ts';
