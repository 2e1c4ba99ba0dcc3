import fc from 'fast-check';
import { anyCharacter } from '#testkit/any-character.ts';

/** JSON texts as no serialiser writes them, and the parts of requests that are made of them. */

const space = fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n', ' \n\t\r ');

/** The inside of a string: raw text, every kind of escape, halves of surrogate pairs, long runs. */
const stringContent = fc
  .array(
    fc.oneof(
      fc.string({ maxLength: 12 }).map((text) => JSON.stringify(text).slice(1, -1)),
      fc.string({ unit: anyCharacter, maxLength: 8 }).map((text) => JSON.stringify(text).slice(1, -1)),
      fc.constantFrom(
        ...[
          '\\u0041',
          '\\u00E9',
          '\\ud83d\\ude00',
          '\\ud83d',
          '\\uDE00',
          '\\/',
          '\\b\\f\\n\\r\\t',
          '\\\\',
          '\\"',
        ],
        ...[
          '\\u0000',
          '\u007f',
          '\u2028',
          '\ufeff',
          '\ufffd',
          '😀',
          'stream_options',
          '}',
          ']',
          '{\\"usage\\":1}',
        ],
      ),
      fc.integer({ min: 50, max: 300 }).map((length) => 'iVBORw0K'.repeat(length)),
    ),
    { maxLength: 5 },
  )
  .map((pieces) => pieces.join(''));

/** A string as it is written. */
const rawString = stringContent.map((content) => `"${content}"`);

const rawNumber = fc.oneof(
  fc.constantFrom('0', '-0', '-0.0e+00', '1E400', '1e-400', '12345678901234567890', '1.10', '0.1e1'),
  fc
    .array(fc.constantFrom(...'0123456789'), { minLength: 400, maxLength: 400 })
    .map((d) => `7${d.join('')}.${d.join('')}`),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
);

const rawScalar = fc.oneof(rawString, rawNumber, fc.constantFrom('true', 'false', 'null'));

const nested = fc
  .tuple(fc.integer({ min: 1, max: 2000 }), fc.constantFrom('[', '{"a":'))
  .map(([depth, open]) => `${open.repeat(depth)}0${(open === '[' ? ']' : '}').repeat(depth)}`);

function toArray(elements: readonly string[], spaces: readonly string[]): string {
  const at = (index: number) => spaces[index % spaces.length] ?? '';
  return `[${elements.map((element, index) => at(index) + element + at(index + 1)).join(',') || at(0)}]`;
}

function toObject(
  members: readonly (readonly [key: string, value: string])[],
  spaces: readonly string[],
): string {
  const at = (index: number) => spaces[index % spaces.length] ?? '';
  const written = members.map(
    ([key, value], index) => `${at(index)}${key}${at(index + 1)}:${at(index + 2)}${value}${at(index + 3)}`,
  );
  return `{${written.join(',') || at(0)}}`;
}

const spaces = fc.array(space, { minLength: 1, maxLength: 5 });

/** Any JSON value, as text. */
const rawValue: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    rawScalar,
    nested,
    fc.tuple(fc.array(tie('value'), { maxLength: 3 }), spaces).map(([elements, s]) => toArray(elements, s)),
    fc
      .tuple(fc.array(fc.tuple(rawString, tie('value')), { maxLength: 3 }), spaces)
      .map(([members, s]) => toObject(members, s)),
  ),
})).value;

const DECIDING = ['model', 'stream', 'stream_options'];

const member = fc.oneof(
  fc.tuple(rawString, rawValue).filter(([key]) => !DECIDING.includes(JSON.parse(key))),
  // Members that the gateway reads, with any value.
  fc.tuple(fc.constantFrom('"messages"', '"prompt"', '"input"', '"max_tokens"', '"tools"', '"n"'), rawValue),
);
/** Of several the last counts, so that one of these may come before that. */
const earlierMember = fc.oneof(member, fc.tuple(fc.constantFrom('"model"', '"mod\\u0065l"'), rawValue));

/** A request body: the members given stand among generated ones, and decide. */
export function bodyWith(members: readonly (readonly [key: string, value: string])[]): fc.Arbitrary<string> {
  return fc
    .tuple(
      fc.array(earlierMember, { maxLength: 5 }),
      fc.array(member, { maxLength: 3 }),
      spaces,
      fc.constantFrom('', '', '\ufeff'),
      space,
    )
    .map(([before, after, s, mark, around]) => {
      const object = toObject([...before, ...members, ...after], s);
      return `${mark}${around}${object}${around}`;
    });
}
