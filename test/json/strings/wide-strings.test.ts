import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { wideStrings } from '#json/strings';
import { anyCharacter } from '#testkit/any-character.ts';

const WINDOW_BYTES = 16 * 1024;
/** The sizes of the first windows add up to these; later ones are whole. */
const EDGES = [512, 512 + 1024, 512 + 1024 + 2048, WINDOW_BYTES, 2 * WINDOW_BYTES - 512, 2 * WINDOW_BYTES];

function open() {
  if (wideStrings === null) throw new Error('this Node has no WebAssembly');
  return wideStrings;
}

describe('strings read sixteen bytes at a time', () => {
  it('end at the first quote, control character or wrong escape, wherever a window ends', () => {
    for (const special of ['"', '\u001f', '\\x', '\\u00zz', '\\']) {
      for (const edge of EDGES) {
        for (let at = edge - 20; at <= edge + 20; at++) {
          const bytes = Buffer.from(`${'a'.repeat(at)}${special}`);
          expect(open().skip(bytes, 0, bytes.length)).toBe(at);
        }
      }
    }
  });

  it('step over escapes that a window cuts', () => {
    for (const edge of EDGES) {
      for (let at = edge - 14; at <= edge + 2; at++) {
        const bytes = Buffer.from(`${'a'.repeat(at)}\\ud83d\\ude00\\n${'b'.repeat(100)}"`);
        expect(open().skip(bytes, 0, bytes.length)).toBe(bytes.length - 1);
        expect(open().hasEscapes).toBe(true);
        const decoded = open().decode(bytes, 0, bytes.length - 1);
        expect(decoded.equals(Buffer.from(`${'a'.repeat(at)}😀\n${'b'.repeat(100)}`))).toBe(true);
      }
    }
  });

  it('decode to what JSON.parse decodes, lone surrogates as U+FFFD', () => {
    const unit = fc.oneof(
      fc.constantFrom(
        '\\"',
        '\\\\',
        '\\/',
        '\\n',
        '\\u0000',
        '\\ud83d',
        '\\ude00',
        '\\uD83D\\uDE00',
        '\\u00E9',
      ),
      fc.string({ unit: anyCharacter }).map((text) => JSON.stringify(text).slice(1, -1)),
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 40 }), (units) => {
        const contents = Buffer.from(units.join(''));
        const text = String(JSON.parse(`"${contents}"`));
        expect(open().decode(contents, 0, contents.length).toString()).toBe(Buffer.from(text).toString());
      }),
    );
  });

  it('count code points as JavaScript does', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 400 }), fc.nat(400), (text, count) => {
        const utf8 = Buffer.from(text);
        const points = [...text];
        const end = open().advance(utf8, 0, utf8.length, count);
        expect(end).toBe(Buffer.byteLength(points.slice(0, count).join('')));
        expect(open().left).toBe(Math.max(0, count - points.length));
      }),
    );
  });
});
