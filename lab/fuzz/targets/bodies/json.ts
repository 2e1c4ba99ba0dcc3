import { JsonCursor, JsonSyntaxError, MemberScanner, type WantedMembers } from '#json';
import { readJsonValue } from '#testkit/reading/read-json-value.ts';
import { type FuzzTarget, must, mustEqual, piecesOf } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';
import { mayBeMisread } from '../../misread-key.ts';

const WORDS = ['usage', 'timings', 'choices', 'index', 'finish_reason', 'a', 'b', 'stop', 'prompt_tokens'];
const WANTED: WantedMembers = {
  members: ['usage', 'timings'],
  list: 'choices',
  itemMembers: ['index', 'finish_reason'],
};

/** The reader of JSON texts, and the scanner of answers. */
export const JSON_READER: FuzzTarget = {
  name: 'json',
  reads: 'JSON: the cursor, reading and skipping, and the scanner of answers',
  oracle: 'JSON.parse accepts the same texts and has the same values; cuts change nothing',
  variants: 1,
  ciInputs: 20_000,
  generate: (random) => Buffer.from(jsonText(random, WORDS)),
  check(input) {
    const { bytes } = input;
    // Both must see the same text: bytes that are not UTF-8 become a replacement character for JSON.parse.
    const text = bytes.toString();
    const isSame = Buffer.from(text).equals(bytes);
    const expected = attempt(() => JSON.parse(text.replace(/^\ufeff/, '')));
    const read = attempt(() => readWhole(new JsonCursor(bytes)));
    if (isSame && !mayBeMisread(text)) mustEqual('the value', read, expected);
    const skipped = attempt(() => skipWhole(new JsonCursor(bytes)));
    must(skipped === null ? read === null : read !== null, 'skipping and reading disagree');
    const whole = scan([bytes]);
    mustEqual('what a scanner finds in pieces', scan(piecesOf(input)), whole);
    return read !== null;
  },
  read(input) {
    attempt(() => skipWhole(new JsonCursor(input.bytes)));
    return scanPieces(piecesOf(input));
  },
};

/** The value in a list; null: it is no JSON. */
function attempt(read: () => unknown): readonly [unknown] | null {
  try {
    return [read()];
  } catch (error) {
    if (error instanceof JsonSyntaxError || error instanceof SyntaxError) return null;
    throw error;
  }
}

function readWhole(cursor: JsonCursor): unknown {
  const value = readJsonValue(cursor);
  cursor.end();
  return value;
}

function skipWhole(cursor: JsonCursor): null {
  cursor.skip();
  cursor.end();
  return null;
}

function scan(pieces: readonly Buffer[]): unknown {
  const scanner = scanPieces(pieces);
  const captured = [...scanner.captured].map(([key, raw]) => [key, raw.toString('latin1')]);
  return { captured, items: scanner.items, hasBegunItem: scanner.hasBegunItem };
}

function scanPieces(pieces: readonly Buffer[]): MemberScanner {
  const scanner = new MemberScanner(WANTED);
  for (const piece of pieces) {
    const copy = Buffer.from(piece);
    scanner.push(copy);
    copy.fill('"');
  }
  return scanner;
}
