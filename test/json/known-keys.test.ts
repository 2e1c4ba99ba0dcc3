import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCharacter } from '#testkit/any-character.ts';
import { JsonCursor } from '../../src/json/cursor.ts';
import { KNOWN_NAMES, toKnownKey } from '../../src/json/known-keys.ts';

test.each(['', 'idx', 'i', 'Choices', 'prompt_token', 'söme'])(
  '%j is not known and has to be decoded',
  (name) => {
    const bytes = Buffer.from(name);
    expect(toKnownKey(bytes, 0, bytes.length)).toBeUndefined();
  },
);

test('every name of the list is found', () => {
  for (const name of KNOWN_NAMES) expect(toKnownKey(Buffer.from(name), 0, name.length)).toBe(name);
});

test('a key is decoded correctly, known or not', () => {
  const name = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.constantFrom('usage', 'usag\u0065', 'role', 'elor'),
  );
  fc.assert(
    fc.property(name, (key) => {
      const wellFormed = key.toWellFormed();
      const cursor = new JsonCursor(Buffer.from(`{${JSON.stringify(wellFormed)}:1}`));
      cursor.beginObject();
      cursor.nextKey();
      expect(cursor.key()).toBe(wellFormed);
    }),
  );
});
