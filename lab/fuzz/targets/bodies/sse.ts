import {
  createEventData,
  readEventData,
  type SseSink,
  SseSplitter,
} from '../../../../src/proxy/response/events/sse.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzInput, type FuzzTarget, must, mustEqual, piecesOf } from '../../fuzz-target.ts';

const LINE_ENDS = ['\n', '\n', '\r\n', '\r'];
const LINES = [
  ...['data: {"a":1}', 'data:x', 'data', 'data:', 'data:  two', 'event: error', 'event:error', 'error: {}'],
  ...[': comment', 'id: 7', 'retry: 5', 'datax: 1', 'data : 1', '\ufeffdata: b', 'data: é😀', '', '', ''],
];
/** Larger events pass unread. */
const MAX_EVENT_BYTES = [40, 1 << 20] as const;

/** The splitter of event streams. */
export const SSE: FuzzTarget = {
  name: 'sse',
  reads: 'event streams: the splitter, and the data of an event',
  oracle: 'the lines and events of a splitter that has the whole stream; every byte goes on once, in order',
  variants: MAX_EVENT_BYTES.length,
  ciInputs: 20_000,
  generate(random: Random) {
    let text = '';
    for (let left = random.below(14); left > 0; left--) text += random.pick(LINES) + random.pick(LINE_ENDS);
    return Buffer.from(text);
  },
  check(input) {
    const whole = input.bytes.toString('latin1');
    const expected = splitNaively(whole);
    const found = splitInPieces(input);
    mustEqual('the bytes', found.map(({ text }) => text).join(''), whole);
    mustEqual(
      'the events',
      found.map(({ text }) => text),
      expected,
    );
    for (const { text, isOverlong } of found) {
      if (isOverlong) must(text.length > (MAX_EVENT_BYTES[input.variant] ?? 0), 'a small event is overlong');
      else mustEqual('the data of an event', readData(text), readDataNaively(text));
    }
    return expected.length > 0;
  },
  read(input) {
    const splitter = new SseSplitter(MAX_EVENT_BYTES[input.variant] ?? 0);
    const ignored: SseSink = {
      onEvent: () => undefined,
      onOverlong: () => undefined,
      takeKnown: (_, start) => start,
    };
    for (const piece of piecesOf(input)) splitter.push(piece, ignored);
    return splitter;
  },
};

interface Split {
  text: string;
  isOverlong: boolean;
}

function splitInPieces(input: FuzzInput): readonly Split[] {
  const splitter = new SseSplitter(MAX_EVENT_BYTES[input.variant] ?? 0);
  const events: Split[] = [];
  let isInOverlong = false;
  const sink: SseSink = {
    onEvent(bytes, start, end) {
      isInOverlong = false;
      add(events, bytes.toString('latin1', start, end), false);
    },
    onOverlong(bytes, start, end) {
      const text = bytes.toString('latin1', start, end);
      const last = events.at(-1);
      if (isInOverlong && last !== undefined) last.text += text;
      else add(events, text, true);
      isInOverlong = splitter.isSkipping;
    },
    takeKnown: (_, start) => start,
  };
  for (const piece of piecesOf(input)) splitter.push(piece, sink);
  splitter.end(sink);
  return events;
}

/** A line feed alone after a carriage return is the rest of the event before. */
function add(events: Split[], text: string, isOverlong: boolean): void {
  const last = events.at(-1);
  if (last !== undefined && text === '\n' && last.text.endsWith('\r')) last.text += text;
  else events.push({ text, isOverlong });
}

/** The events of a whole stream with their ends; the last one may have none. */
function splitNaively(stream: string): string[] {
  const events: string[] = [];
  let event = '';
  for (const [line = ''] of stream.matchAll(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g)) {
    event += line;
    if (!/^[\r\n]/.test(line)) continue;
    events.push(event);
    event = '';
  }
  return event === '' ? events : [...events, event];
}

function readData(event: string): unknown {
  const bytes = Buffer.from(`xx${event}yy`, 'latin1');
  const data = createEventData();
  const hasData = readEventData(bytes, 2, bytes.length - 2, data);
  const text = hasData ? data.bytes.toString('latin1', data.start, data.end) : null;
  return { text, hasErrorLine: data.hasErrorLine };
}

function readDataNaively(event: string): unknown {
  const values: string[] = [];
  let hasErrorLine = false;
  for (const line of event.replace(/^\xef\xbb\xbf/, '').split(/\r\n|\r|\n/)) {
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') values.push(value);
    if (name === 'error' || (name === 'event' && value === 'error')) hasErrorLine = true;
  }
  return { text: values.length === 0 ? null : values.join('\n'), hasErrorLine };
}
