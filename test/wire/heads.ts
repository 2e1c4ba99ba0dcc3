import {
  findHeadEnd,
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from '#wire/message';
import { type ExchangeConnection, HttpExchange } from '../../src/wire/client/http-exchange.ts';

export type { ExchangeConnection };

/** The head of a request with these lines. */
export function requestOf(lines: readonly string[]): RequestHead {
  const bytes = toBytes(lines);
  return parseRequestHead(bytes, 0, findHeadEnd(bytes, 0));
}

/** The head of a response with these lines to a request with this method. */
export function responseOf(lines: readonly string[], method: string): ResponseHead {
  const bytes = toBytes(lines);
  return parseResponseHead(bytes, 0, findHeadEnd(bytes, 0), method);
}

/** The exchange of a request with these lines, on a connection that the test stands for. */
export function exchangeOf(lines: readonly string[], connection: ExchangeConnection): HttpExchange {
  return new HttpExchange(requestOf(lines), connection, 0);
}

function toBytes(lines: readonly string[]): Buffer {
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
