import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '#testkit/runs.ts';
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
      { numRuns: runs(2_000) },
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

/** What a splitter gives its sink, and how it stands after each read. Events that begin with `known` are taken at once. */
function traceOf(pieces: readonly Buffer[], maxEventBytes = 1024) {
  const splitter = new SseSplitter(maxEventBytes);
  const steps: unknown[] = [];
  let read: Buffer = NOTHING;
  const sink = {
    onEvent(bytes: Buffer, start: number, end: number) {
      steps.push([bytes === read ? 'event' : 'joined', bytes.toString('latin1', start, end)]);
    },
    onOverlong(bytes: Buffer, start: number, end: number) {
      steps.push(['overlong', bytes.toString('latin1', start, end)]);
    },
    takeKnown(bytes: Buffer, start: number) {
      const rest = bytes.toString('latin1', start);
      const known = /^known[^\n]*\n\n/.exec(rest)?.[0] ?? '';
      steps.push(known === '' ? ['unknown', rest.slice(0, 1)] : ['known', known]);
      return start + known.length;
    },
  };
  const state = () => {
    const { isMidEvent, isSkipping, pending, pendingBytes } = splitter;
    expect(pendingBytes).toBe(pending.length);
    return { isMidEvent, isSkipping, pending: pending.toString('latin1') };
  };
  for (const piece of pieces) {
    read = piece;
    splitter.push(piece, sink);
    steps.push(state());
  }
  splitter.end(sink);
  return { steps, end: state() };
}

const NOTHING = Buffer.alloc(0);
const BETWEEN = { isMidEvent: false, isSkipping: false, pending: '' };
const inEvent = (pending: string) => ({ isMidEvent: true, isSkipping: false, pending });
const SKIPPING = { isMidEvent: true, isSkipping: true, pending: '' };

describe('a splitter', () => {
  test.each<readonly [string, readonly string[], readonly unknown[]]>([
    [
      'asks its sink once where an event begins, and gives it the others in the bytes of the read',
      ['known 1\n\nknown 2\n\na\n\nknown 3\n\nb\n\n'],
      [
        ...[
          ['known', 'known 1\n\n'],
          ['known', 'known 2\n\n'],
          ['unknown', 'a'],
          ['event', 'a\n\n'],
        ],
        ...[['known', 'known 3\n\n'], ['unknown', 'b'], ['event', 'b\n\n'], BETWEEN],
      ],
    ],
    [
      'asks in each read, except within an event',
      ['known 1\n\n', 'known 2\n\na', 'known 3\n\nknown 4\n\n', 'known 5\n\n'],
      [
        ...[['known', 'known 1\n\n'], BETWEEN, ['known', 'known 2\n\n'], ['unknown', 'a'], inEvent('a')],
        ...[['joined', 'aknown 3\n\n'], ['known', 'known 4\n\n'], BETWEEN, ['known', 'known 5\n\n'], BETWEEN],
      ],
    ],
    [
      'gives the late half of a CRLF alone, and asks for what is behind it',
      ['a\r\n\r', '\nknown 1\n\nb\r\r', 'known 2\n\n'],
      [
        ...[['unknown', 'a'], ['event', 'a\r\n\r'], BETWEEN, ['event', '\n'], ['known', 'known 1\n\n']],
        ...[['unknown', 'b'], ['event', 'b\r\r'], BETWEEN, ['known', 'known 2\n\n'], BETWEEN],
      ],
    ],
    [
      'leaves the late half of a CRLF in its event',
      ['a\r', '\n\nb\r', '\r', 'c\n\n'],
      [
        ...[['unknown', 'a'], inEvent('a\r'), ['joined', 'a\r\n\n'], ['unknown', 'b'], inEvent('b\r')],
        ...[['joined', 'b\r\r'], BETWEEN, ['unknown', 'c'], ['event', 'c\n\n'], BETWEEN],
      ],
    ],
    [
      'takes an LF for half of a CRLF only right behind the CR',
      ['a\r', 'b', '\n', '\n'],
      [
        ...[['unknown', 'a'], inEvent('a\r'), inEvent('a\rb'), inEvent('a\rb\n')],
        ...[['joined', 'a\rb\n\n'], BETWEEN],
      ],
    ],
    [
      'remembers a CR over a read without bytes',
      ['a\r', '', '\n', 'b\r\r', '', '\n', ''],
      [
        ...[['unknown', 'a'], inEvent('a\r'), inEvent('a\r'), inEvent('a\r\n')],
        ...[['joined', 'a\r\nb\r\r'], BETWEEN, BETWEEN, ['event', '\n'], BETWEEN, BETWEEN],
      ],
    ],
    [
      'has blank lines as events of their own',
      ['\n\r\n', '\r', '\n', '\n'],
      [
        ...[['unknown', '\n'], ['event', '\n'], ['unknown', '\r'], ['event', '\r\n'], BETWEEN],
        ...[['unknown', '\r'], ['event', '\r'], BETWEEN, ['event', '\n'], BETWEEN],
        ...[['unknown', '\n'], ['event', '\n'], BETWEEN],
      ],
    ],
  ])('%s', (_, pieces, expected) => {
    expect(traceOf(pieces.map((piece) => Buffer.from(piece)))).toEqual({ steps: expected, end: BETWEEN });
  });

  test.each<readonly [string, readonly string[], readonly unknown[]]>([
    ['an event of as many bytes', ['abc', 'de'], [['unknown', 'a'], inEvent('abc'), inEvent('abcde')]],
    ['more, if its end is there', ['abcdef\n\n'], [['unknown', 'a'], ['event', 'abcdef\n\n'], BETWEEN]],
    [
      'more, if its end is in the next read',
      ['abcde', 'f\n\n'],
      [['unknown', 'a'], inEvent('abcde'), ['joined', 'abcdef\n\n'], BETWEEN],
    ],
  ])('keeps, with a limit of 5 bytes, %s', (_, pieces, expected) => {
    const { steps } = traceOf(
      pieces.map((piece) => Buffer.from(piece)),
      5,
    );
    expect(steps.slice(0, expected.length)).toEqual(expected);
  });

  test.each<readonly [string, readonly string[], readonly unknown[]]>([
    [
      'that comes at once',
      ['abcdef', 'g', 'h\n\nij\n\n'],
      [
        ...[['unknown', 'a'], ['overlong', 'abcdef'], SKIPPING, ['overlong', 'g'], SKIPPING],
        ...[['overlong', 'h\n\n'], ['unknown', 'i'], ['event', 'ij\n\n'], BETWEEN],
      ],
    ],
    [
      'whose beginning has come',
      ['a', 'bcdef', 'g\n\n'],
      [
        ...[['unknown', 'a'], inEvent('a'), ['overlong', 'a'], ['overlong', 'bcdef'], SKIPPING],
        ...[['overlong', 'g\n\n'], BETWEEN],
      ],
    ],
    [
      'behind another one',
      ['ab\n\ncdefgh', '\r', '\n\r', '\n'],
      [
        ...[['unknown', 'a'], ['event', 'ab\n\n'], ['unknown', 'c'], ['overlong', 'cdefgh'], SKIPPING],
        ...[['overlong', '\r'], SKIPPING, ['overlong', '\n\r'], BETWEEN, ['event', '\n'], BETWEEN],
      ],
    ],
    ['that does not end', ['abcdef'], [['unknown', 'a'], ['overlong', 'abcdef'], SKIPPING]],
  ])('gives an event of more than 5 bytes in parts: one %s', (_, pieces, expected) => {
    expect(
      traceOf(
        pieces.map((piece) => Buffer.from(piece)),
        5,
      ),
    ).toEqual({ steps: expected, end: BETWEEN });
  });

  test.each(['a', 'data: a', 'data: a\n'])('gives what is left at the end: %j', (text) => {
    const { steps, end } = traceOf([Buffer.from(text)]);
    expect([steps.slice(1), end]).toEqual([[inEvent(text), ['joined', text]], BETWEEN]);
  });

  test('does not copy the first part of an event', () => {
    const read = Buffer.alloc(40, 'data: a\n\ndata');
    const splitter = new SseSplitter(1024);
    const nothing = () => undefined;
    splitter.push(read, { onEvent: nothing, onOverlong: nothing, takeKnown: (_bytes, start) => start });
    expect(splitter.pending.buffer).toBe(read.buffer);
  });
});

describe('the data of an event', () => {
  const MARK = '\u00ef\u00bb\u00bf';

  test('is empty before any is read', () => {
    expect(createEventData()).toStrictEqual({
      bytes: NOTHING,
      start: 0,
      end: 0,
      isInPlace: true,
      hasErrorLine: false,
    });
  });

  test.each<readonly [string, string | null, Partial<Record<'isInPlace' | 'hasErrorLine', boolean>>]>([
    ['data: a\n\n', 'a', {}],
    ['data:a\n\n', 'a', {}],
    ['data:  a \n\n', ' a ', {}],
    ['data:\n\n', '', {}],
    ['data\n\n', '', {}],
    ['data: a', 'a', {}],
    [`${MARK}data: a\n\n`, 'a', {}],
    [`${MARK}\n\n`, null, {}],
    [`${MARK}${MARK}data: a\n\n`, null, {}],
    ['\u00ef\u00bb.data: a\n\n', null, {}],
    ['\u00ef.\u00bfdata: a\n\n', null, {}],
    ['.\u00bb\u00bfdata: a\n\n', null, {}],
    ['...data: a\n\n', null, {}],
    ['datax: a\n\n', null, {}],
    ['xata: a\n\n', null, {}],
    ['dat: a\n\n', null, {}],
    [' data: a\n\n', null, {}],
    [': data: a\n\n', null, {}],
    ['id: 1\ndata: a\nretry: 5\n\n', 'a', {}],
    ['data: a\ndata: b\ndata:c\ndata\n\n', 'a\nb\nc\n', { isInPlace: false }],
    ['data: a\rdata: b\r\r', 'a\nb', { isInPlace: false }],
    ['data: a\r\ndata: b\r\n\r\n', 'a\nb', { isInPlace: false }],
    [
      `data: ${'a'.repeat(40)}\ndata: ${'b'.repeat(40)}\n\n`,
      `${'a'.repeat(40)}\n${'b'.repeat(40)}`,
      { isInPlace: false },
    ],
    ['event: error\ndata: a\n\n', 'a', { hasErrorLine: true }],
    ['event:error\n\n', null, { hasErrorLine: true }],
    ['event: error:\ndata: a\n\n', 'a', {}],
    ['event: error x\ndata: a\n\n', 'a', {}],
    ['event: other\ndata: a\n\n', 'a', {}],
    ['other: error\ndata: a\n\n', 'a', {}],
    ['error: {}\n\n', null, { hasErrorLine: true }],
    ['error\n\n', null, { hasErrorLine: true }],
    ['errors: {}\n\n', null, {}],
  ])('of %j is %j', (text, expected, { isInPlace = true, hasErrorLine = false }) => {
    // What lies before and behind an event, and what was read before, says nothing about it.
    for (const [before, behind] of [
      ['', ''],
      ['data: error', 'data: x\n'],
      [MARK, ' '],
    ] as const) {
      const bytes = Buffer.from(before + text + behind, 'latin1');
      const into = createEventData();
      readEventData(Buffer.from('event: error\ndata: 1\ndata: 2\n\n'), 0, 30, into);
      const hasData = readEventData(bytes, before.length, before.length + text.length, into);
      expect([hasData, into.hasErrorLine, into.isInPlace]).toEqual([
        expected !== null,
        hasErrorLine,
        isInPlace,
      ]);
      if (expected === null) continue;
      expect(into.bytes.toString('latin1', into.start, into.end)).toBe(expected);
      expect(into.end - into.start).toBe(expected.length);
      if (isInPlace) expect(into.bytes).toBe(bytes);
    }
  });

  test.each([
    [3, null],
    [4, ''],
    [5, ''],
    [6, ''],
    [7, 'a'],
  ])('is not what lies behind the first %d bytes', (end, expected) => {
    const bytes = Buffer.from('..data: ab');
    const into = createEventData();
    expect(readEventData(bytes, 2, 2 + end, into)).toBe(expected !== null);
    expect(bytes.toString('latin1', into.start, into.end)).toBe(expected ?? '');
    expect(into.start).toBeLessThanOrEqual(into.end);
  });
});
