import { HTTPParser } from 'node:_http_common';
import { METHODS } from 'node:http';
import {
  type Input,
  type Reading,
  type ReadMessage,
  toRequestStart,
  toResponseStart,
} from './read-message.ts';

/** More than any input has: limits are not compared. */
const MAX_HEADER_BYTES = 1024 * 1024;
const NOTHING: readonly string[] = [];
const RESOURCE = {};

/** The results of one run, which the parser's callbacks fill in. */
interface Run {
  readonly input: Input;
  readonly messages: ReadMessage[];
  /** Messages that have begun: one more than `messages` has if the last head is not whole. */
  begunCount: number;
  /** Fields that came before the head was whole, or trailer fields. */
  flatFields: string[];
  target: string;
}

/** What llhttp read, and the number of messages that began. */
export interface LlhttpReading extends Reading {
  readonly begunCount: number;
}

const METHODS_BY_NUMBER = learnMethods();

/** Reads with llhttp through Node's binding, strictly by its grammar, in one read. */
export function readWithLlhttp(input: Input): LlhttpReading {
  const run: Run = { input, messages: [], begunCount: 0, flatFields: [], target: '' };
  const parser = createParser(run);
  const result = parser.execute(input.bytes);
  const isRefused = typeof result !== 'number';
  // An end in the middle of a message does not make the message malformed.
  if (!isRefused) parser.finish();
  const { messages, begunCount } = run;
  return { messages, begunCount, isRefused, readBytes: isRefused ? result.bytesParsed : result };
}

/** A parser whose callbacks fill in the run. */
function createParser(run: Run): HTTPParser {
  const parser = new HTTPParser();
  const side = run.input.side === 'request' ? HTTPParser.REQUEST : HTTPParser.RESPONSE;
  parser.initialize(side, RESOURCE, MAX_HEADER_BYTES, HTTPParser.kLenientNone);
  parser[HTTPParser.kOnMessageBegin] = () => {
    run.begunCount++;
    run.flatFields = [];
    run.target = '';
  };
  parser[HTTPParser.kOnHeaders] = (flatFields, url) => {
    run.flatFields.push(...flatFields);
    // Passed with the first fields of a head only.
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
    // llhttp does not know the request of a response, and would read a body after interim responses other than 100 to
    // 103, against RFC 9112 6.3.
    const isInterim = status !== undefined && status >= 100 && status < 200;
    const hasNoBody = side === 'response' && (isInterim || methods[turn % methods.length] === 'HEAD');
    run.flatFields = [];
    run.messages.push({
      start,
      fields,
      // Without a body it means nothing: llhttp computes it before it knows that no body follows.
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
  return parser;
}

/** llhttp reports methods as numbers, and Node exports no complete list: each is read once here. */
function learnMethods(): ReadonlyMap<number, string> {
  const methods = new Map<number, string>();
  const parser = new HTTPParser();
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
