import type { Fields } from '#wire/message';
import {
  BodyReader,
  findHeadEnd,
  HttpError,
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from '#wire/message';
import {
  type Input,
  type Reading,
  type ReadMessage,
  toRequestStart,
  toResponseStart,
} from './read-message.ts';

const NOTHING: readonly string[] = [];

/** Reads with the gateway's own parser as a connection does: message by message, while the connection is kept. */
export function readWithOurs(input: Input): Reading {
  const { cuts } = input;
  // The reader moves chunks together in its input.
  const bytes = Buffer.from(input.bytes);
  const messages: ReadMessage[] = [];
  const body = new BodyReader();
  let message: ReadMessage | null = null;
  let at = 0;
  let scanFrom = 0;
  const sink = {
    onData(view: Buffer) {
      if (message !== null) message.body += view.toString('latin1');
    },
  };
  const finish = (finished: ReadMessage) => {
    finished.isWhole = true;
    finished.endOffset = at;
    finished.trailers = toFlat(body.trailers);
    scanFrom = at;
    message = null;
  };
  try {
    for (const cut of cuts) {
      const arrived = bytes.subarray(0, cut);
      for (;;) {
        if (message === null) {
          if (messages.at(-1)?.keepsAlive === false) return { messages, isRefused: false, readBytes: at };
          const end = findHeadEnd(arrived, at, scanFrom);
          if (end === -1) {
            scanFrom = cut;
            break;
          }
          const head = parseHead(input, at, end, messages.length);
          message = toMessage(head);
          messages.push(message);
          body.start(head.framing);
          at = end;
        }
        at = body.read(arrived, at, sink);
        if (!body.isDone) break;
        finish(message);
      }
    }
    body.end();
    if (message !== null) finish(message);
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return { messages, isRefused: error.code === 'malformed', readBytes: at };
  }
  return { messages, isRefused: false, readBytes: at };
}

function parseHead({ side, bytes, methods }: Input, start: number, end: number, turn: number) {
  if (side === 'request') return parseRequestHead(bytes, start, end);
  return parseResponseHead(bytes, start, end, methods[turn % methods.length] as string);
}

function toMessage(head: RequestHead | ResponseHead): ReadMessage {
  const { minorVersion, keepsAlive } = head;
  return {
    start:
      'method' in head
        ? toRequestStart(head.method, head.target, minorVersion)
        : toResponseStart(minorVersion, head.status, head.reason),
    fields: toFlat(head.fields),
    keepsAlive,
    body: '',
    trailers: NOTHING,
    isWhole: false,
    isUpgrade: false,
    endOffset: -1,
  };
}

function toFlat({ names, values }: Fields): readonly string[] {
  if (names.length === 0) return NOTHING;
  return names.flatMap((name, index) => [name, values[index] as string]);
}
