import { describe, expect, test } from 'vitest';
import { BodyReader } from '../../../src/wire/message/body-reader.ts';
import type { Framing } from '../../../src/wire/message/head.ts';
import { HttpError } from '../../../src/wire/message/http-error.ts';

const MALFORMED = new HttpError('malformed');
const CLOSED_EARLY = new HttpError('closed_early');
const CHUNKED: Framing = { kind: 'chunked' };
const UNTIL_CLOSE: Framing = { kind: 'until_close' };
const lengthOf = (bytes: number): Framing => ({ kind: 'length', bytes });

interface Body {
  readonly views: readonly string[];
  /** Bytes that do not belong to the body. */
  readonly restBytes: number;
  readonly isDone: boolean;
  readonly trailers: readonly string[];
}

/** Reads a body from successive reads, as from a socket; latin-1. */
function readBody(framing: Framing, reads: readonly string[], reader = new BodyReader()): Body {
  const views: string[] = [];
  let restBytes = 0;
  reader.start(framing);
  for (const text of reads) {
    const bytes = Buffer.from(`#${text}`, 'latin1');
    const end = reader.read(bytes, 1, { onData: (view) => views.push(view.toString('latin1')) });
    restBytes += bytes.length - end;
  }
  const { names, values } = reader.trailers;
  const trailers = names.map((name, index) => `${name}: ${values[index]}`);
  return { views, restBytes, isDone: reader.isDone, trailers };
}

/** The text in every possible split into three reads. */
function* everySplit(text: string): Generator<readonly string[]> {
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      yield [text.slice(0, first), text.slice(first, second), text.slice(second)];
    }
  }
}

describe('an empty body', () => {
  test.for([{ kind: 'none' }, lengthOf(0)] as const)(
    'is done at once and reads nothing (case %#)',
    (framing) => {
      expect(readBody(framing, [])).toEqual({ views: [], restBytes: 0, isDone: true, trailers: [] });
      expect(readBody(framing, ['GET'])).toEqual({ views: [], restBytes: 3, isDone: true, trailers: [] });
    },
  );
});

describe('a body with a length', () => {
  test('ends after its length, however it is split', () => {
    for (const reads of everySplit('helloGET')) {
      const { views, restBytes, isDone } = readBody(lengthOf(5), reads);
      expect([views.join(''), restBytes, isDone]).toEqual(['hello', 3, true]);
    }
  });

  test('passes on one view per read', () => {
    expect(readBody(lengthOf(5), ['he', 'll', 'oGET']).views).toEqual(['he', 'll', 'o']);
  });

  test('is not done before its last byte', () => {
    expect(readBody(lengthOf(6), ['hello'])).toMatchObject({ views: ['hello'], isDone: false });
  });

  test('may be as long as the largest safe integer', () => {
    expect(readBody(lengthOf(Number.MAX_SAFE_INTEGER), ['hello']).isDone).toBe(false);
  });
});

describe('a body without a length', () => {
  test('is everything until the peer closes the connection', () => {
    const reader = new BodyReader();
    expect(readBody(UNTIL_CLOSE, ['he', '', 'llo'], reader)).toMatchObject({
      views: ['he', 'llo'],
      restBytes: 0,
      isDone: false,
    });
    reader.end();
    expect(reader.isDone).toBe(true);
  });
});

describe('a chunked body', () => {
  test.for([
    ['no chunk', '0\r\n\r\n', []],
    ['one chunk', '5\r\nhello\r\n0\r\n\r\n', ['hello']],
    ['several chunks', '2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n', ['he', 'llo']],
    ['a chunk of every digit', `1a\r\n${'x'.repeat(26)}\r\n0\r\n\r\n`, ['x'.repeat(26)]],
    ['a size in capitals', `1A\r\n${'x'.repeat(26)}\r\n0\r\n\r\n`, ['x'.repeat(26)]],
    ['zeros before sizes', '0005\r\nhello\r\n000\r\n\r\n', ['hello']],
    ['a size of 15 digits', '000000000000005\r\nhello\r\n0\r\n\r\n', ['hello']],
    ['data that looks like framing', '8\r\n\r\n0\r\n\r\n\0\r\n0\r\n\r\n', ['\r\n0\r\n\r\n\0']],
    ['an extension', '5;a\r\nhello\r\n0;b\r\n\r\n', ['hello']],
    ['an extension with a value', '5;a=b\r\nhello\r\n0\r\n\r\n', ['hello']],
    ['an extension with long names', '5;abc=def\r\nhello\r\n0\r\n\r\n', ['hello']],
    ['an extension in quotes', '5;a="\tb;c=\\"\\\\ \xe9"\r\nhello\r\n0\r\n\r\n', ['hello']],
    ['an extension of empty quotes', '5;a=""\r\nhello\r\n0\r\n\r\n', ['hello']],
    ['several extensions', '5;a=b;c;d="e";f=g\r\nhello\r\n0\r\n\r\n', ['hello']],
  ] as const)('may have %s, and ends after its trailer section', ([, text, views]) => {
    expect(readBody(CHUNKED, [`${text}GET`])).toEqual({
      views: views.length === 0 ? [] : [views.join('')],
      restBytes: 3,
      isDone: true,
      trailers: [],
    });
    for (const reads of everySplit(`${text}GET`)) {
      const { views: splitViews, restBytes, isDone } = readBody(CHUNKED, reads);
      expect([splitViews.join(''), restBytes, isDone]).toEqual([views.join(''), 3, true]);
    }
  });

  test('is the same when it arrives byte by byte', () => {
    const text = '5;a="b"\r\nhello\r\n6\r\n world\r\n0\r\nX-A: b\r\nX-A: c\r\n\r\n';
    expect(readBody(CHUNKED, [...text])).toEqual({
      views: [...'hello world'],
      restBytes: 0,
      isDone: true,
      trailers: ['X-A: b', 'X-A: c'],
    });
  });

  test('passes on the data of each read in one view', () => {
    expect(readBody(CHUNKED, ['5\r\nhel', 'lo\r\n1\r\n', '!\r\n0\r\n\r\n']).views).toEqual([
      'hel',
      'lo',
      '!',
    ]);
  });

  test('passes on views into the read without copying', () => {
    const reader = new BodyReader();
    const bytes = Buffer.from('5\r\nhello\r\n0\r\n\r\n');
    const views: Buffer[] = [];
    reader.start(CHUNKED);
    reader.read(bytes, 0, { onData: (view) => views.push(view) });
    expect(
      views.map(({ buffer, byteOffset }) => [buffer === bytes.buffer, byteOffset - bytes.byteOffset]),
    ).toEqual([[true, 3]]);
  });

  test.for([
    ['no size', '\r\n'],
    ['a size that is not a number', 'zz\r\n'],
    ['a size with a letter that is no digit', 'g\r\n0123456789abcdef\r\n0\r\n\r\n'],
    ['a negative size', '-5\r\nhello\r\n'],
    ['a size with a plus', '+5\r\nhello\r\n'],
    ['a size with 0x', '0x5\r\nhello\r\n'],
    ['a space before the size', ' 5\r\nhello\r\n'],
    ['a space after the size', '5 \r\nhello\r\n'],
    ['a tab after the size', '5\t\r\nhello\r\n'],
    ['an underscore in the size', '1_0\r\nhello\r\n'],
    ['a size of 16 digits', '0000000000000005\r\nhello\r\n'],
    ['a size that no number holds exactly', '20000000000000\r\n'],
    ['a size beyond 2^64', 'fffffffffffffffff\r\n'],
    ['an LF after the size', '5\nhello\r\n'],
    ['a CR after the size', '5\rhello\r\n'],
    ['a CR and another byte for the line end after the size', '5\rXhello\r\n0\r\n\r\n'],
    ['another byte and an LF for the line end after the size', '5X\nhello\r\n0\r\n\r\n'],
    ['CR CR LF after the size', '5\r\r\nhello\r\n'],
    ['a NUL after the size', '5\0\r\nhello\r\n'],
    ['an empty extension', '5;\r\nhello\r\n'],
    ['two semicolons', '5;;a\r\nhello\r\n'],
    ['a space before an extension', '5 ;a\r\nhello\r\n'],
    ['a space in an extension', '5; a\r\nhello\r\n'],
    ['a space after an extension', '5;a \r\nhello\r\n'],
    ['an extension without a value', '5;a=\r\nhello\r\n'],
    ['an extension without a value, then another', '5;a=;b\r\nhello\r\n'],
    ['an extension without a name', '5;=b\r\nhello\r\n'],
    ['an extension with two values', '5;a=b=c\r\nhello\r\n'],
    ['an LF in an extension', '5;a\nhello\r\n'],
    ['a CR in an extension', '5;a\rb\r\nhello\r\n'],
    ['a NUL in an extension', '5;a\0\r\nhello\r\n'],
    ['a byte beyond ASCII in an extension', '5;a\xe9\r\nhello\r\n'],
    ['open quotes', '5;a="b\r\nhello\r\n'],
    ['an LF in quotes', '5;a="b\n"\r\nhello\r\n'],
    ['an escaped LF in quotes', '5;a="b\\\n"\r\nhello\r\n'],
    ['a NUL in quotes', '5;a="b\0"\r\nhello\r\n'],
    ['a DEL in quotes', '5;a="b\x7f"\r\nhello\r\n'],
    ['text after quotes', '5;a="b"c\r\nhello\r\n'],
    ['quotes in an extension’s name', '5;"a"\r\nhello\r\n'],
    ['a chunk that is longer than its size', '4\r\nhello\r\n'],
    ['a chunk that is shorter than its size', '6\r\nhello\r\n0\r\n\r\n'],
    ['an LF after the data', '5\r\nhello\n0\r\n\r\n'],
    ['a CR after the data', '5\r\nhello\r0\r\n\r\n'],
    ['a CR and another byte for the line end after the data', '5\r\nhello\rX0\r\n\r\n'],
    ['nothing after the data', '5\r\nhello0\r\n\r\n'],
    ['an LF after the last chunk', '0\n\r\n'],
    ['an LF at its end', '0\r\n\n'],
    ['a CR at its end', '0\r\n\rG'],
  ] as const)('with %s is malformed, however it is split', ([, text]) => {
    for (const reads of everySplit(text)) expect(() => readBody(CHUNKED, reads)).toThrow(MALFORMED);
  });

  test('may have a size line of the maximum length, but no longer', () => {
    const reader = new BodyReader({ maxLineBytes: 8 });
    expect(readBody(CHUNKED, ['5;abcd\r\nhello\r\n0;abcd\r\n\r\n'], reader).isDone).toBe(true);
    expect(() => readBody(CHUNKED, ['5;abcde\r\nhello\r\n'], reader)).toThrow(MALFORMED);
    expect(() => readBody(CHUNKED, ['5;abcdefg'], reader)).toThrow(MALFORMED);
    expect(() => readBody(CHUNKED, [...'5;abcdefg'], reader)).toThrow(MALFORMED);
  });

  test('may have a size line of 4 KiB, and a trailer section of 16 KiB, but no longer', () => {
    const line = `5;${'a'.repeat(4096 - 4)}\r\n`;
    expect(readBody(CHUNKED, [`${line}hello\r\n0\r\n\r\n`]).isDone).toBe(true);
    expect(() => readBody(CHUNKED, [`5${line}`])).toThrow(MALFORMED);
    const section = `X: ${'a'.repeat(16 * 1024 - 7)}\r\n\r\n`;
    expect(readBody(CHUNKED, [`0\r\n${section}`]).isDone).toBe(true);
    expect(() => readBody(CHUNKED, [`0\r\nX${section}`])).toThrow(MALFORMED);
  });

  test('may announce as many bytes as a number holds exactly', () => {
    expect(readBody(CHUNKED, ['1fffffffffffff\r\nhello'])).toMatchObject({ views: ['hello'], isDone: false });
  });

  test('may have many chunks, whose size lines together exceed the limit', () => {
    const text = '1;abcd\r\nx\r\n'.repeat(100_000);
    const reader = new BodyReader({ maxLineBytes: 8 });
    expect(readBody(CHUNKED, [text, '0\r\n\r\n'], reader).views).toEqual(['x'.repeat(100_000)]);
  });
});

describe('trailer fields', () => {
  const read = (section: string, reader = new BodyReader()) =>
    readBody(CHUNKED, [`1\r\nx\r\n0\r\n${section}\r\nGET`], reader);

  test('are kept in order and spelling, however they are split', () => {
    const text = '0\r\nX-B: 1\r\nx-a:\t\xe9 b \r\nX-b:\r\n\r\nGET';
    for (const reads of everySplit(text)) {
      expect(readBody(CHUNKED, reads)).toMatchObject({
        isDone: true,
        restBytes: 3,
        trailers: ['X-B: 1', 'x-a: \xe9 b', 'X-b: '],
      });
    }
  });

  test('belong to one message only', () => {
    const reader = new BodyReader();
    expect(read('X-A: b\r\n', reader).trailers).toEqual(['X-A: b']);
    const { trailers } = reader;
    expect(read('', reader).trailers).toEqual([]);
    expect(trailers.get('x-a')).toBe('b');
    expect(read('X-C: d\r\n', reader).trailers).toEqual(['X-C: d']);
  });

  test('are discarded with an incomplete message', () => {
    const reader = new BodyReader();
    readBody(CHUNKED, ['0\r\nX-A: b\r\nX-'], reader);
    expect(read('X-C: d\r\n', reader).trailers).toEqual(['X-C: d']);
  });

  test.for([
    ['a space before the colon', 'X-A : b\r\n'],
    ['no colon', 'X-A\r\n'],
    ['no name', ': b\r\n'],
    ['a space before the name', ' X-A: b\r\n'],
    ['a fold', 'X-A: b\r\n c\r\n'],
    ['a bare LF', 'X-A: b\nX-C: d\r\n'],
    ['a bare CR', 'X-A: b\rc\r\n'],
    ['CR CR LF', 'X-A: b\r\r\n'],
    ['a NUL', 'X-A: b\0\r\n'],
    ['a name beyond ASCII', '\xe9: b\r\n'],
    ['a Host', 'Host: g\r\n'],
    ['a Content-Length', 'Content-Length: 1\r\n'],
    ['a Transfer-Encoding', 'transfer-encoding: chunked\r\n'],
    ['a Connection', 'X-A: b\r\nCONNECTION: close\r\n'],
  ] as const)('with %s are malformed', ([, section]) => {
    expect(() => read(section)).toThrow(MALFORMED);
  });

  test('are refused at a byte that has no place in them, before they are complete', () => {
    for (const begin of ['X-A: b\0', 'X-A: b\n', 'X-A: b\rc', '\rX']) {
      expect(() => readBody(CHUNKED, [`0\r\n${begin}`])).toThrow(MALFORMED);
    }
  });

  test('are limited in size, however they are split', () => {
    const reader = new BodyReader({ maxTrailerBytes: 10 });
    expect(read('X-A: b\r\n', reader).isDone).toBe(true);
    expect(() => read('X-A: bc\r\n', reader)).toThrow(MALFORMED);
    const open = '0\r\nX-A: bcdefg';
    expect(() => readBody(CHUNKED, [open], reader)).toThrow(MALFORMED);
    expect(() => readBody(CHUNKED, [...open], reader)).toThrow(MALFORMED);
  });
});

describe('the end of the connection', () => {
  test.for([
    ['a length', lengthOf(5), 'hell'],
    ['a length, before its first byte', lengthOf(5), ''],
    ['chunks, before the first', CHUNKED, ''],
    ['chunks, in a size', CHUNKED, '5'],
    ['chunks, in an extension', CHUNKED, '5;a'],
    ['chunks, in data', CHUNKED, '5\r\nhell'],
    ['chunks, after data', CHUNKED, '5\r\nhello\r\n'],
    ['chunks, before the last line end', CHUNKED, '0\r\n'],
    ['chunks, in the last line end', CHUNKED, '0\r\n\r'],
    ['chunks, in trailer fields', CHUNKED, '0\r\nX-A: b\r\n'],
  ] as const)('is an error in a body of %s', ([, framing, text]) => {
    const reader = new BodyReader();
    readBody(framing, [text], reader);
    expect(() => reader.end()).toThrow(CLOSED_EARLY);
    expect(reader.isDone).toBe(false);
  });

  test.for([
    [{ kind: 'none' }, ''],
    [lengthOf(5), 'hello'],
    [CHUNKED, '0\r\n\r\n'],
  ] as const)('is not an error after a complete body (case %#)', ([framing, text]) => {
    const reader = new BodyReader();
    readBody(framing, [text], reader);
    reader.end();
    expect(reader.isDone).toBe(true);
  });
});

test('one reader reads the bodies of successive messages', () => {
  const reader = new BodyReader();
  expect(readBody(lengthOf(2), ['ab'], reader)).toMatchObject({ views: ['ab'], isDone: true });
  expect(readBody(CHUNKED, ['1\r\nc\r\n0\r\n\r\n'], reader)).toMatchObject({ views: ['c'], isDone: true });
  expect(readBody({ kind: 'none' }, ['d'], reader)).toMatchObject({ views: [], restBytes: 1 });
  expect(readBody(CHUNKED, ['2\r\n'], reader).isDone).toBe(false);
  expect(readBody(CHUNKED, ['1\r\ne\r\n0\r\n\r\n'], reader)).toMatchObject({ views: ['e'], isDone: true });
  expect(readBody(CHUNKED, ['2\r\nf'], reader).isDone).toBe(false);
  expect(readBody({ kind: 'none' }, ['g'], reader)).toMatchObject({ views: [], restBytes: 1, isDone: true });
});

describe('a body whose chunks are joined', () => {
  const wire = '3\r\none\r\n3;x=1\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\nrest';

  test('is passed on in one view per read, and the bytes after it do not change', () => {
    const reader = new BodyReader();
    reader.start({ kind: 'chunked' });
    const views: string[] = [];
    const bytes = Buffer.from(wire);
    const end = reader.read(bytes, 0, { onData: (view) => views.push(view.toString()) });
    expect(views).toEqual(['onetwothree']);
    expect(bytes.toString('latin1', end)).toBe('rest');
    expect(reader.isDone).toBe(true);
  });

  test('is the same however it is split', () => {
    for (let first = 1; first < wire.length; first++) {
      const reader = new BodyReader();
      reader.start({ kind: 'chunked' });
      const texts: string[] = [];
      const sink = { onData: (view: Buffer) => texts.push(view.toString()) };
      reader.read(Buffer.from(wire.slice(0, first)), 0, sink);
      if (!reader.isDone) reader.read(Buffer.from(wire.slice(first)), 0, sink);
      expect(texts.join('')).toBe('onetwothree');
    }
  });

  test('passes on the data before an error', () => {
    const reader = new BodyReader();
    reader.start({ kind: 'chunked' });
    const views: string[] = [];
    const read = () =>
      reader.read(Buffer.from('3\r\none\r\n3\r\ntwo!'), 0, {
        onData: (view) => views.push(view.toString()),
      });
    expect(read).toThrow(HttpError);
    expect(views).toEqual(['onetwo']);
  });
});
