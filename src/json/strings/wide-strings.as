// The contents of JSON strings, sixteen bytes at a time: AssemblyScript, which scripts/build-wide-strings.sh compiles into
// wide-strings-binary.ts. narrow-strings.ts does the same byte by byte: the reference, and what runs without WebAssembly.
//
// The caller copies bytes to INPUT and clears the memory afterwards. Offsets are those of the memory. A vector may be
// read or written up to 15 bytes after its end, so the caller leaves as many bytes free.

/** Where a function leaves its second result. */
const RESULT: usize = 0;

const QUOTE: u32 = 0x22;
const BACKSLASH: u32 = 0x5c;
const LOWER_U: u32 = 0x75;
const ESCAPE_BYTES: u32 = 6;
const REPLACEMENT: u32 = 0xfffd;

/**
 * Steps over plain bytes and valid escapes. Returns the offset of the first quote, control character, or escape that is
 * invalid or incomplete; `to` if there is none. RESULT: whether there were escapes.
 */
export function skip(from: u32, to: u32): u32 {
  let at = from;
  let hasEscapes: u32 = 0;
  while (at < to) {
    let marks: u32 = i8x16.bitmask(specialOf(v128.load(at)));
    if (marks == 0) {
      at = skipPlain(at + 16, to);
      continue;
    }
    let next = at + 16;
    while (marks != 0) {
      const mark = at + ctz(marks);
      const length = mark < to && load<u8>(mark) == BACKSLASH ? escapeLength(mark, to) : 0;
      if (length == 0) {
        store<u32>(RESULT, hasEscapes);
        return min(mark, to);
      }
      hasEscapes = 1;
      const end = mark + length;
      if (end >= next) {
        next = end;
        break;
      }
      marks &= <u32>-1 << (end - at);
    }
    at = next;
  }
  store<u32>(RESULT, hasEscapes);
  return to;
}

/** Steps over whole groups of plain bytes. */
// @ts-ignore: decorator
@inline
function skipPlain(from: u32, to: u32): u32 {
  let at = from;
  for (; at + 32 <= to; at += 32) {
    if (v128.any_true(v128.or(specialOf(v128.load(at)), specialOf(v128.load(at, 16))))) break;
  }
  return at;
}

/** Marks quotes, backslashes and control characters. */
// @ts-ignore: decorator
@inline
function specialOf(block: v128): v128 {
  return v128.or(
    v128.or(i8x16.eq(block, i8x16.splat(<i8>QUOTE)), i8x16.eq(block, i8x16.splat(<i8>BACKSLASH))),
    i8x16.eq(block, v128.and(block, i8x16.splat(0x1f))),
  );
}

/** The length of the escape; 0 if it is invalid or incomplete. */
function escapeLength(at: u32, to: u32): u32 {
  if (at + 2 > to) return 0;
  const escaped: u32 = load<u8>(at + 1);
  if (escaped != LOWER_U) return simpleEscape(escaped) != 0 ? 2 : 0;
  if (at + ESCAPE_BYTES > to) return 0;
  for (let digit = at + 2; digit < at + ESCAPE_BYTES; digit++) {
    if (hexDigit(load<u8>(digit)) > 15) return 0;
  }
  return ESCAPE_BYTES;
}

/** The character that a backslash before this one stands for; 0: none. */
// @ts-ignore: decorator
@inline
function simpleEscape(escaped: u32): u32 {
  switch (escaped) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
      return escaped;
    case 0x62: // b
      return 0x08;
    case 0x66: // f
      return 0x0c;
    case 0x6e: // n
      return 0x0a;
    case 0x72: // r
      return 0x0d;
    case 0x74: // t
      return 0x09;
    default:
      return 0;
  }
}

/** The value of a hexadecimal digit; more than 15: it is none. */
// @ts-ignore: decorator
@inline
function hexDigit(byte: u32): u32 {
  const digit = byte - 0x30;
  if (digit <= 9) return digit;
  const letter = (byte | 0x20) - 0x61;
  return letter <= 5 ? letter + 10 : 16;
}

/**
 * Decodes valid escapes, and copies everything else. Lone surrogates become U+FFFD. Returns the end of what it has
 * written. RESULT: the end of what it has read, which is before an escape that `to` cuts. Unless `isLast`, it is also
 * before a surrogate whose other half may follow.
 */
export function decode(from: u32, to: u32, output: u32, isLast: bool): u32 {
  let at = from;
  let out = output;
  while (at < to) {
    const block = v128.load(at);
    v128.store(out, block);
    const marks: u32 = i8x16.bitmask(i8x16.eq(block, i8x16.splat(<i8>BACKSLASH)));
    if (marks == 0 && at + 16 <= to) {
      at += 16;
      out += 16;
      continue;
    }
    const plain = min(marks == 0 ? 16 : ctz(marks), to - at);
    at += plain;
    out += plain;
    if (at + 2 > to) break;
    const escaped: u32 = load<u8>(at + 1);
    if (escaped != LOWER_U) {
      store<u8>(out++, simpleEscape(escaped));
      at += 2;
      continue;
    }
    if (at + ESCAPE_BYTES > to) break;
    const unit = hexUnit(at + 2);
    if ((unit & 0xfc00) != 0xd800) {
      out = writeUtf8((unit & 0xfc00) == 0xdc00 ? REPLACEMENT : unit, out);
      at += ESCAPE_BYTES;
      continue;
    }
    const hasNext = at + 2 * ESCAPE_BYTES <= to;
    if (!hasNext && !isLast) break;
    const isEscape = hasNext && load<u8>(at + 6) == BACKSLASH && load<u8>(at + 7) == LOWER_U;
    const low = isEscape ? hexUnit(at + 8) : 0;
    if ((low & 0xfc00) == 0xdc00) {
      out = writeUtf8(0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff), out);
      at += 2 * ESCAPE_BYTES;
    } else {
      out = writeUtf8(REPLACEMENT, out);
      at += ESCAPE_BYTES;
    }
  }
  store<u32>(RESULT, at);
  return out;
}

/** The value of four hexadecimal digits. */
function hexUnit(at: u32): u32 {
  return (
    (hexDigit(load<u8>(at)) << 12) |
    (hexDigit(load<u8>(at + 1)) << 8) |
    (hexDigit(load<u8>(at + 2)) << 4) |
    hexDigit(load<u8>(at + 3))
  );
}

/** Writes a code point. Returns the offset after it. */
function writeUtf8(point: u32, out: u32): u32 {
  if (point < 0x80) {
    store<u8>(out, point);
    return out + 1;
  }
  if (point < 0x800) {
    store<u8>(out, 0xc0 | (point >> 6));
    store<u8>(out + 1, 0x80 | (point & 0x3f));
    return out + 2;
  }
  if (point < 0x10000) {
    store<u8>(out, 0xe0 | (point >> 12));
    store<u8>(out + 1, 0x80 | ((point >> 6) & 0x3f));
    store<u8>(out + 2, 0x80 | (point & 0x3f));
    return out + 3;
  }
  store<u8>(out, 0xf0 | (point >> 18));
  store<u8>(out + 1, 0x80 | ((point >> 12) & 0x3f));
  store<u8>(out + 2, 0x80 | ((point >> 6) & 0x3f));
  store<u8>(out + 3, 0x80 | (point & 0x3f));
  return out + 4;
}

/**
 * Steps over at most `count` code points of UTF-8, and over bytes that continue the one before. Returns the offset after
 * them. RESULT: how many of `count` are left.
 */
export function advance(from: u32, to: u32, count: u32): u32 {
  let at = from;
  let left = count;
  while (at < to) {
    // As signed numbers, bytes that continue a code point are the least: -128 to -65.
    let firsts: u32 = i8x16.bitmask(i8x16.gt_s(v128.load(at), i8x16.splat(-65)));
    if (to - at < 16) firsts &= (1 << (to - at)) - 1;
    const points = popcnt(firsts);
    if (points > left) {
      for (; left > 0; left--) firsts &= firsts - 1;
      store<u32>(RESULT, 0);
      return at + ctz(firsts);
    }
    left -= points;
    at += 16;
  }
  store<u32>(RESULT, left);
  return to;
}
