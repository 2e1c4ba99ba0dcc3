import { HTTPParser } from 'node:_http_common';
import { METHODS } from 'node:http';
import {
  type Input,
  type Reading,
  type ReadMessage,
  toRequestStart,
  toResponseStart,
} from './read-message.ts';

/** Above what any input has: how large a head may be is not what is compared. */
const MAX_HEADER_BYTES = 1024 * 1024;
const NOTHING: readonly string[] = [];
const RESOURCE = {};

/** What the callbacks of one run note. */
interface Run {
  readonly input: Input;
  readonly messages: ReadMessage[];
  /** How many messages have begun: one more than there are when its head is not whole. */
  begunCount: number;
  /** Fields that came before the head was whole, or trailer fields. */
  flatFields: string[];
  target: string;
}

/** What llhttp made of the bytes, and how many messages it saw begin. */
export interface LlhttpReading extends Reading {
  readonly begunCount: number;
}

const parser = new HTTPParser();
const METHODS_BY_NUMBER = learnMethods();
let run: Run;

parser[HTTPParser.kOnMessageBegin] = () => {
  run.begunCount++;
  run.flatFields = [];
  run.target = '';
};
parser[HTTPParser.kOnHeaders] = (flatFields, url) => {
  run.flatFields.push(...flatFields);
  // Told with the first fields of a head only.
  run.target += url;
};
parser[HTTPParser.kOnHeadersComplete] = (
  major,
  minor,
  flatFields,
  method,
  url,
  status,
  reason,
  isUpgrade,
  keepsAlive,
) => {
  const { side, methods } = run.input;
  const version = major === 1 ? minor : Number.NaN;
  const turn = run.messages.length;
  const start =
    side === 'request'
      ? toRequestStart(METHODS_BY_NUMBER.get(method ?? -1) ?? '', url ?? run.target, version)
      : toResponseStart(version, status ?? 0, reason ?? '');
  const fields = flatFields ?? run.flatFields;
  // Which request it answers has to be said. So have interim responses other than 100 to 103, behind which llhttp
  // would read a body, against RFC 9112 6.3.
  const isInterim = status !== undefined && status >= 100 && status < 200;
  const hasNoBody = side === 'response' && (isInterim || methods[turn % methods.length] === 'HEAD');
  run.flatFields = [];
  run.messages.push({
    start,
    fields,
    // Told before llhttp knows that no body follows: then it means nothing.
    keepsAlive: keepsAlive || hasNoBody,
    body: '',
    trailers: NOTHING,
    isWhole: false,
    isUpgrade,
    endOffset: -1,
  });
  return hasNoBody ? 1 : 0;
};
parser[HTTPParser.kOnBody] = (bytes) => {
  const message = run.messages.at(-1);
  if (message !== undefined) message.body += bytes.toString('latin1');
};
parser[HTTPParser.kOnMessageComplete] = () => {
  const message = run.messages.at(-1);
  if (message === undefined) return;
  message.isWhole = true;
  message.trailers = run.flatFields;
};

/** llhttp tells methods by numbers, and Node has no list that knows all of them: here each is read once. */
function learnMethods(): ReadonlyMap<number, string> {
  const methods = new Map<number, string>();
  for (const name of METHODS) {
    parser.initialize(HTTPParser.REQUEST, RESOURCE, MAX_HEADER_BYTES, HTTPParser.kLenientNone);
    parser[HTTPParser.kOnHeadersComplete] = (_major, _minor, _fields, method) => {
      if (method !== undefined) methods.set(method, name);
      return 0;
    };
    parser.execute(Buffer.from(`${name} ${name === 'CONNECT' ? 'g:1' : '/'} HTTP/1.1\r\nHost: g\r\n\r\n`));
  }
  return methods;
}

/** Reads with llhttp, by Node's binding to it, with nothing allowed beyond its grammar; in one read. */
export function readWithLlhttp(input: Input): LlhttpReading {
  run = { input, messages: [], begunCount: 0, flatFields: [], target: '' };
  const side = input.side === 'request' ? HTTPParser.REQUEST : HTTPParser.RESPONSE;
  parser.initialize(side, RESOURCE, MAX_HEADER_BYTES, HTTPParser.kLenientNone);
  const result = parser.execute(input.bytes);
  const isRefused = typeof result !== 'number';
  // What it says of an end in the middle of a message is not that the message is malformed.
  if (!isRefused) parser.finish();
  const { messages, begunCount } = run;
  return { messages, begunCount, isRefused, readBytes: isRefused ? result.bytesParsed : result };
}
