import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createEventData, readEventData, SseSplitter } from '../../../../src/proxy/response/events/sse.ts';

interface Seen {
  readonly events: string[];
  readonly data: (string | null)[];
  readonly overlong: string[];
  readonly pending: string;
  readonly all: string;
}

function split(pieces: readonly Buffer[], maxEventBytes = 1024): Seen {
  const splitter = new SseSplitter(maxEventBytes);
  const seen: Seen = { events: [], data: [], overlong: [], pending: '', all: '' };
  let all = '';
  const sink = {
    onEvent(bytes: Buffer, start: number, end: number) {
      const view = createEventData();
      const hasData = readEventData(bytes, start, end, view);
      all += bytes.toString('latin1', start, end);
      // The late half of a CRLF that was cut in two is given alone: it belongs to the event before it.
      if (end - start === 1 && bytes[start] === 10 && seen.events.at(-1)?.endsWith('\r')) {
        seen.events.push(`${seen.events.pop()}\n`);
        return;
      }
      seen.events.push(bytes.toString('latin1', start, end));
      seen.data.push(hasData ? view.bytes.toString('utf8', view.start, view.end) : null);
    },
    onOverlong(bytes: Buffer, start: number, end: number) {
      all += bytes.toString('latin1', start, end);
      seen.overlong.push(bytes.toString('latin1', start, end));
    },
    takeKnown: (_bytes: Buffer, start: number) => start,
  };
  for (const piece of pieces) splitter.push(piece, sink);
  const pending = splitter.pending.toString('latin1');
  return { ...seen, pending, all: all + pending };
}

const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
const line = fc.oneof(
  fc.string({ maxLength: 12 }).map((text) => `data: ${text.replace(/[\r\n]/g, '')}`),
  fc.constantFrom('data:tight', ': comment', 'event: x', 'id: 1', 'data', 'data: {"a":"ü€𝄞"}', 'error: {}'),
);
const streamText = fc
  .array(fc.tuple(fc.array(fc.tuple(line, lineEnd), { maxLength: 3 }), lineEnd), { maxLength: 6 })
  .map((events) => events.map(([lines, end]) => lines.flat().join('') + end).join(''));

describe('SSE', () => {
  test.each([
    ['LF', 'data: a\n\ndata: b\n\n'],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n'],
    ['CR', 'data: a\r\rdata: b\r\r'],
    ['no space after the colon', 'data:a\n\ndata:b\n\n'],
  ])('events are found with %s', (_name, text) => {
    expect(split([Buffer.from(text)]).data).toEqual(['a', 'b']);
  });

  test('data over several lines is joined by LF', () => {
    expect(split([Buffer.from('data: a\ndata: b\ndata\n\n')]).data).toEqual(['a\nb\n']);
  });

  test('an event without its blank line is pending, and is an event once the stream has ended', () => {
    const seen = split([Buffer.from('data: a\n\ndata: [DONE]')]);
    expect(seen.data).toEqual(['a']);
    expect(seen.pending).toBe('data: [DONE]');
  });

  test('however a stream is cut into reads, its events and bytes are the same', () => {
    fc.assert(
      fc.property(streamText, fc.array(fc.nat(200), { maxLength: 12 }), (text, cuts) => {
        const whole = Buffer.from(text);
        const places = [...new Set(cuts.map((cut) => Math.min(cut, whole.length)))].sort((a, b) => a - b);
        const pieces = [0, ...places].map((from, i) => whole.subarray(from, places[i] ?? whole.length));
        const cutUp = split(pieces);
        const atOnce = split([whole]);
        expect(cutUp.all).toBe(whole.toString('latin1'));
        expect(cutUp.events).toEqual(atOnce.events);
        expect(cutUp.data).toEqual(atOnce.data);
      }),
      { numRuns: 2_000 },
    );
  });

  test('an event past the limit passes unread in parts, and the next event is found', () => {
    const text = `data: ${'x'.repeat(100)}\n\ndata: b\n\n`;
    for (let cut = 0; cut <= text.length; cut++) {
      const seen = split([Buffer.from(text.slice(0, cut)), Buffer.from(text.slice(cut))], 50);
      expect(seen.all).toBe(text);
      expect(seen.data.at(-1)).toBe('b');
    }
  });
});
