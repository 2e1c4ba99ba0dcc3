import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJsonValue } from '#testkit/reading/read-json-value.ts';
import { runs } from '#testkit/runs.ts';
import { JsonCursor } from '../../src/json/cursor.ts';
import { JsonSyntaxError } from '../../src/json/lexer.ts';
import { allowAtMost, type MemberAllowance, MemberLimitError } from '../../src/json/member-allowance.ts';

type Outcome = { accepted: true; value: unknown } | { accepted: false };

function attempt(read: () => unknown): Outcome {
  try {
    return { accepted: true, value: read() };
  } catch (error) {
    if (error instanceof JsonSyntaxError || error instanceof SyntaxError) return { accepted: false };
    throw error;
  }
}

function byReading(text: string): Outcome {
  return attempt(() => {
    const cursor = new JsonCursor(Buffer.from(text));
    const value = readJsonValue(cursor);
    cursor.end();
    return value;
  });
}

function bySkipping(text: string): boolean {
  return attempt(() => {
    const cursor = new JsonCursor(Buffer.from(text));
    cursor.skip();
    cursor.end();
  }).accepted;
}

/** JSON.parse, but for the one byte order mark that we accept and it does not. */
function byParsing(text: string): Outcome {
  return attempt(
    () =>
      JSON.parse(
        Buffer.from(text)
          .toString()
          .replace(/^\ufeff/, ''),
      ) as unknown,
  );
}

const jsonText = fc
  .tuple(
    fc.oneof(fc.jsonValue({ stringUnit: 'binary' }), fc.array(fc.string({ minLength: 60, maxLength: 200 }))),
    fc.constantFrom('', ' ', '\t', '\n  '),
  )
  .map(([value, indent]) => JSON.stringify(value, null, indent));

const scrap = fc.constantFrom(
  ...[...'{}[],:"\\', '/', '\\u00', '\\ud800', '0', '-', '+', '.', 'e5', 'E', '1.5e-7'],
  ...[
    'true',
    'null',
    'nul',
    ' ',
    '\n',
    '\r',
    '\u0000',
    '\u001f',
    '\u007f',
    '\u2028',
    '\ufeff',
    'é',
    '😀',
    '\ud800',
  ],
);

/** A text with up to three places replaced, each by a piece that means something in JSON. */
const mutatedText = fc
  .tuple(jsonText, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 2 }), scrap), { minLength: 1, maxLength: 3 }))
  .map(([text, edits]) =>
    edits.reduce((edited, [place, removed, inserted]) => {
      const at = place % (edited.length + 1);
      return edited.slice(0, at) + inserted + edited.slice(at + removed);
    }, text),
  );

describe('a cursor over a JSON text', () => {
  it('reads what JSON.parse reads', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        expect(byReading(text)).toStrictEqual(byParsing(text));
      }),
    );
  });

  it('that is known to be JSON reads and skips the same', () => {
    const escaped = fc.string({ unit: fc.constantFrom('"', '\\', '\n', 'a', 'é'), maxLength: 200 });
    const text = fc.oneof(
      jsonText,
      fc.array(fc.dictionary(escaped, escaped)).map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(text, (json) => {
        const bytes = Buffer.from(`${json}"`);
        const reading = JsonCursor.ofChecked(bytes).reset(bytes, 0, bytes.length - 1);
        const skipping = JsonCursor.ofChecked(bytes).reset(bytes, 0, bytes.length - 1);

        skipping.skip();

        // Not by JSON.parse: that of V8 14.6 takes the key "\"" for "\\" when it has seen that before.
        expect(readJsonValue(reading)).toStrictEqual(
          readJsonValue(new JsonCursor(bytes, 0, bytes.length - 1)),
        );
        expect([reading.position, skipping.position]).toEqual([bytes.length - 1, bytes.length - 1]);
      }),
      { numRuns: runs(500) },
    );
  });

  it('agrees with JSON.parse about damaged texts, read or skipped', () => {
    fc.assert(
      fc.property(mutatedText, (text) => {
        const expected = byParsing(text);
        expect(byReading(text)).toStrictEqual(expected);
        expect(bySkipping(text)).toBe(expected.accepted);
      }),
      { numRuns: runs(3000) },
    );
  });

  it.each([
    ...[
      '',
      ' ',
      '{',
      '[',
      '"',
      '"\\',
      '"\\u12',
      '-',
      '01',
      '-01',
      '1.',
      '.5',
      '1e',
      '1e+',
      '+1',
      '0x1',
      'NaN',
    ],
    ...['[1,]', '[,1]', '[1 2]', '[1}', '{"a":1,}', '{,}', '{"a"}', '{"a":}', '{"a" 1}', '{a:1}', "{'a':1}"],
    ...[
      '"\t"',
      '"\n"',
      '"\\x41"',
      '"\\u12g4"',
      'tru',
      'truee',
      'True',
      'nulll',
      '1 2',
      '{} x',
      '"a" "b"',
      '[]]',
    ],
    ...[`"${'x'.repeat(200)}\n"`, `"${'x'.repeat(200)}`, '[\u00a01]', '/* */ 1', '\u0000', '[1]\u0000'],
  ])('refuses %j', (text) => {
    expect(byReading(text)).toStrictEqual({ accepted: false });
    expect(bySkipping(text)).toBe(false);
  });

  it('finds a quote, an escape and a control character at every offset of a long string', () => {
    for (let length = 0; length < 160; length++) {
      for (const middle of ['', '\\n', '\\\\', '\\"', '\\u00e9', 'é', '\u0001', '\u001f']) {
        const text = `["${'a'.repeat(length)}${middle}bc","d"]`;
        expect(byReading(text)).toStrictEqual(byParsing(text));
      }
    }
  });

  it('agrees with JSON.parse about long strings with any neighbouring characters', () => {
    const units = [
      '\u0000',
      '\u001f',
      ' ',
      '!',
      '#',
      '[',
      ']',
      '\\n',
      '\\"',
      '\\\\',
      '\u007f',
      'é',
      '\u2028',
      '😀',
    ];
    const content = fc.string({ unit: fc.constantFrom(...units, 'a', 'a', 'a', 'a'), maxLength: 60 });
    fc.assert(
      fc.property(content, content, fc.nat({ max: 80 }), (first, second, length) => {
        for (const damage of ['', '"', '\\']) {
          const text = `["${'a'.repeat(length)}${first}${damage}${second}"]`;
          expect(byReading(text)).toStrictEqual(byParsing(text));
        }
      }),
      { numRuns: runs(1000) },
    );
  });

  it('reads no more members and elements than allowed, on all levels', () => {
    const bytes = Buffer.from('{"a":[1,[],{"b":2}],"c":3}');
    const skipWith = (allowance: MemberAllowance) => {
      const cursor = new JsonCursor(bytes, 0, bytes.length, allowance);
      cursor.skip();
      return cursor;
    };
    expect(() => skipWith(allowAtMost(5))).toThrow(MemberLimitError);
    expect(() => skipWith(allowAtMost(6)).reset(bytes, 0, bytes.length).skip()).not.toThrow();
    let askedCount = 0;
    skipWith({ count: 2, onSpent: () => askedCount++ });
    expect(askedCount).toBe(2);
  });

  it('nests as deep as the input, without recursion', () => {
    const depth = 100_000;
    expect(bySkipping('['.repeat(depth) + ']'.repeat(depth))).toBe(true);
    expect(bySkipping(`${'{"a":['.repeat(depth)}1${']}'.repeat(depth)}`)).toBe(true);
    expect(bySkipping('['.repeat(depth) + ']'.repeat(depth - 1))).toBe(false);
    expect(bySkipping(`${'['.repeat(depth)}}${']'.repeat(depth - 1)}`)).toBe(false);
  });

  it('keeps lone surrogates, and numbers of any length as JSON.parse does', () => {
    for (const text of [
      '"\\ud83d\\ude00 \\ud83d x"',
      '9'.repeat(400),
      `0.${'1'.repeat(400)}`,
      '-0',
      '1e400',
    ]) {
      expect(byReading(text)).toStrictEqual(byParsing(text));
    }
  });

  it('accepts one byte order mark, at the start only', () => {
    const mark = '\ufeff';
    expect(byReading(`${mark} {"a":1}`)).toStrictEqual({ accepted: true, value: { a: 1 } });
    expect(byReading(`${mark}${mark}{}`)).toStrictEqual({ accepted: false });
    expect(byReading(`[${mark}]`)).toStrictEqual({ accepted: false });
  });

  it('stays inside its range and leaves the spans of what it read', () => {
    const bytes = Buffer.from('xx{"a": [1, {"k":2}] ,"b":"c\\n","d":17}yy');
    const cursor = new JsonCursor(bytes, 2, bytes.length - 2);
    const lastSpan = () => bytes.toString('utf8', cursor.valueStart, cursor.valueEnd);
    cursor.beginObject();
    cursor.nextKey();
    cursor.skip();
    expect([cursor.key(), lastSpan(), bytes[cursor.keyStart]]).toEqual(['a', '[1, {"k":2}]', 0x22]);
    cursor.nextKey();
    expect([cursor.readStringSpan(), lastSpan()]).toEqual([true, 'c\\n']);
    cursor.nextKey();
    expect([cursor.readNumber(), lastSpan()]).toEqual([17, '17']);
    expect(cursor.nextKey()).toBe(false);
    cursor.end();
    expect(cursor.position).toBe(bytes.length - 2);
  });

  it('starts over on another text after an error in the middle of one', () => {
    const cursor = new JsonCursor(Buffer.from('{"a":[[["'));
    expect(() => cursor.skip()).toThrow(JsonSyntaxError);
    const long = Buffer.from(JSON.stringify(['y'.repeat(300), '\n'.repeat(90)]));
    expect(readJsonValue(cursor.reset(long, 0, long.length))).toStrictEqual(JSON.parse(long.toString()));
  });

  it('names the offset of an error and quotes nothing', () => {
    const cursor = new JsonCursor(Buffer.from('["canary" canary]'));
    expect(() => cursor.skip()).toThrow(
      expect.objectContaining({ offset: 10, message: 'invalid JSON at byte 10' }),
    );
  });
});
