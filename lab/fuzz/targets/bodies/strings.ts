import { isUtf8 } from 'node:buffer';
import { type WideStrings, wideStrings } from '#json/strings';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';

/** Plain runs, escapes, characters of every length in UTF-8, and what ends a string. */
const PIECES = [
  ...[
    'a',
    ' ',
    'lorem ipsum dolor sit amet, ',
    '0123456789abcde',
    'é',
    '世界',
    '😀',
    '\u007f',
    'x'.repeat(100),
  ],
  ...['\\n', '\\"', '\\\\', '\\/', '\\b', '\\f', '\\r', '\\t', '\\u0041', '\\u00e9', '\\u4e16', '\\u0000'],
  ...['\\ud83d\\ude00', '\\uD83D\\uDE00', '\\ud83d', '\\ude00', '\\ud83d\\ud83d\\ude00', '\\ud83d\\n'],
];
const ENDS = ['"', '\n', '\u0000', '\u001f', '\\x', '\\u12g4', '\\', '\\u', '\\u123'];
/** More than two windows of the reader. */
const LONG_BYTES = 40_000;
const SHORT_BYTES = 1_500;

/** The contents of long strings, sixteen bytes at a time, beside readers that take one byte after another. */
export const STRINGS: FuzzTarget = {
  name: 'strings',
  reads:
    'the contents of long strings, sixteen bytes at a time: their ends, their escapes, their code points',
  oracle:
    'a reader that takes byte by byte stops at the same offset; JSON.parse decodes the same text; strings of JavaScript have the same code points',
  variants: 8,
  ciInputs: 5_000,
  generate: (random, variant) => Buffer.from(contents(random, variant === 0 ? LONG_BYTES : SHORT_BYTES)),
  check({ bytes, cuts }) {
    const wide = openWide();
    const [from = 0] = cuts;
    const end = skipByByte(bytes, from);
    const stop = wide.skip(bytes, from, bytes.length);
    mustEqual('the end, and whether there are escapes', [stop, wide.hasEscapes], end);
    const contents = bytes.subarray(from, stop);
    if (!isUtf8(contents)) return false;
    const text = String(JSON.parse(`"${contents}"`));
    const utf8 = Buffer.from(text);
    must(wide.decode(bytes, from, stop).equals(utf8), 'JSON.parse decodes another text');
    const points = [...text];
    for (const count of [0, 1, points.length >> 1, points.length, points.length + 1]) {
      const at = wide.advance(utf8, 0, utf8.length, count);
      const expected = Buffer.byteLength(points.slice(0, count).join(''));
      mustEqual(`${count} code points`, [at, wide.left], [expected, Math.max(0, count - points.length)]);
    }
    return stop === bytes.length;
  },
  read: ({ bytes }) => openWide().skip(bytes, 0, bytes.length),
};

function openWide(): WideStrings {
  if (wideStrings === null) throw new Error('this Node has no WebAssembly');
  return wideStrings;
}

function contents(random: Random, maxBytes: number): string {
  const pieces: string[] = [];
  for (let left = random.below(maxBytes); left > 0; ) {
    const piece = random.pick(PIECES).repeat(random.chance(10) ? 1 + random.below(40) : 1);
    pieces.push(piece);
    left -= piece.length;
  }
  if (random.chance(40)) pieces.push(random.pick(ENDS), random.pick(PIECES));
  return pieces.join('');
}

/** Where the contents of a string end, or what is no string begins; and whether there is an escape before. */
function skipByByte(bytes: Buffer, from: number): readonly [end: number, hasEscapes: boolean] {
  const valid = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
  const text = bytes.toString('latin1');
  let hasEscapes = false;
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at] as number;
    if (byte === 0x22 || byte < 0x20) break;
    if (byte !== 0x5c) {
      at++;
      continue;
    }
    valid.lastIndex = at;
    const [found = ''] = valid.exec(text) ?? [];
    if (found === '') break;
    hasEscapes = true;
    at += found.length;
  }
  return [at, hasEscapes];
}
