import fc from 'fast-check';

const [FIRST_SURROGATE, SURROGATES] = [0xd800, 0x800];

/**
 * Any code point but the surrogates, as the unit of a `fc.string`. It is what fast-check calls `binary`, which takes a second
 * and a half of the processor in each process, for a table of them all.
 */
export const anyCharacter: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((index) => String.fromCodePoint(index < FIRST_SURROGATE ? index : index + SURROGATES));
