import type { Random } from '../fuzz-http/random.ts';

/** Names that every object of JavaScript has, and texts at the edges of what numbers, strings and escapes may be. */
const TRICKY_WORDS = [
  ...['__proto__', 'constructor', 'toString', 'valueOf', 'length', 'then', ''],
  ...['\u0000', '\ud800', '\u2028', '😀', 'é', 'a\nb', '\\', '"', ' ', 'x'.repeat(300)],
];
const NUMBERS = [
  ...[
    '0',
    '1',
    '-1',
    '7',
    '42',
    '-0',
    '0.5',
    '1e3',
    '1e400',
    '-1e400',
    '9007199254740991',
    '9007199254740993',
  ],
  ...['18446744073709551616', '2147483648', '0.30000000000000004', '1E-7', '123456789012345678901234567890'],
];
const LITERALS = ['true', 'false', 'null', '""', '[]', '{}'];

/** A text that is JSON, of a few levels, with these words as keys and strings. */
export function jsonText(random: Random, words: readonly string[], depth = 4): string {
  const kind = random.below(depth === 0 ? 4 : 8);
  if (kind < 2) return random.chance(70) ? String(random.below(1000)) : random.pick(NUMBERS);
  if (kind === 2) return random.pick(LITERALS);
  if (kind === 3) return jsonString(random, words);
  const count = random.below(5);
  const items = Array.from({ length: count }, () => {
    const value = jsonText(random, words, depth - 1);
    return kind < 6 ? `${jsonString(random, words)}${space(random)}:${space(random)}${value}` : value;
  });
  const inside = items.join(`${space(random)},${space(random)}`);
  return kind < 6 ? `{${inside}}` : `[${inside}]`;
}

/** A string in JSON, some of its characters as escapes. */
export function jsonString(random: Random, words: readonly string[]): string {
  const word = random.chance(85) ? random.pick(words) : random.pick(TRICKY_WORDS);
  const text = JSON.stringify(word);
  if (!random.chance(8) || word === '') return text;
  const at = random.below(word.length);
  const escaped = `\\u${word.charCodeAt(at).toString(16).padStart(4, '0')}`;
  return `${JSON.stringify(word.slice(0, at)).slice(0, -1)}${escaped}${JSON.stringify(word.slice(at + 1)).slice(1)}`;
}

function space(random: Random): string {
  return random.chance(90) ? '' : random.pick([' ', '\n', '\t', '\r\n', '  ']);
}

const SCRAPS = [
  ...[...'{}[],:"\\', '\r', '\n', '\r\n', '\0', ' ', '-', '=', ';', '--', '0', '1e999'],
  ...['null', 'true', '\\u', '\ufeff', '\xff', '\xc3', '%', '${', '*', '&', '#', '\x7f'],
].map((scrap) => Buffer.from(scrap));

/** Bytes with up to four places removed, repeated, replaced, or changed by a bit. */
export function damage(random: Random, bytes: Buffer): Buffer {
  let damaged = bytes;
  for (let left = 1 + random.below(4); left > 0; left--) damaged = damageOnce(random, damaged);
  return damaged;
}

function damageOnce(random: Random, bytes: Buffer): Buffer {
  const start = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, start + 1 + random.below(random.chance(80) ? 4 : 60));
  const [before, piece, after] = [bytes.subarray(0, start), bytes.subarray(start, end), bytes.subarray(end)];
  switch (random.below(7)) {
    case 0:
      return Buffer.concat([before, after]);
    case 1:
      return Buffer.concat([before, piece, piece, after]);
    case 2:
      return Buffer.concat([before, random.pick(SCRAPS), piece, after]);
    case 3:
      return Buffer.concat([before, random.pick(SCRAPS), after]);
    case 4:
      return before;
    case 5: {
      const at = random.below(bytes.length + 1);
      return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)]);
    }
    default: {
      const flipped = Buffer.from(bytes);
      if (start < flipped.length) flipped[start] = (flipped[start] as number) ^ (1 << random.below(8));
      return flipped;
    }
  }
}

/** The bytes with a piece of them so often that they are long. */
export function lengthen(random: Random, bytes: Buffer): Buffer {
  const start = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, start + 1 + random.below(random.chance(50) ? 3 : bytes.length));
  const piece = bytes.subarray(start, end);
  if (piece.length === 0) return bytes;
  const times = Math.ceil((1 + random.below(LONG_BYTES)) / piece.length);
  const repeated = Buffer.alloc(times * piece.length, piece);
  return Buffer.concat([bytes.subarray(0, start), repeated, bytes.subarray(end)]);
}

const LONG_BYTES = 32 * 1024;

/** Offsets at which reads end: none, a few, or all. */
export function cutsOf(random: Random, length: number): number[] {
  if (length === 0 || random.chance(20)) return [];
  if (length < 200 && random.chance(15)) return Array.from({ length: length - 1 }, (_, index) => index + 1);
  const cuts = new Set(Array.from({ length: 1 + random.below(6) }, () => random.below(length)));
  cuts.delete(0);
  return [...cuts].sort((a, b) => a - b);
}
