import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonCursor, MemberScanner } from '#json';
import { runs } from '#testkit/runs.ts';
import { readChoicesAnswer } from '../../../src/proxy/endpoints/choices.ts';
import { RECORDED_ENDPOINTS } from '../../../src/proxy/endpoints/table.ts';
import type { AnswerFacts } from '../../../src/proxy/response/events/stream-chunk.ts';

const ENDPOINTS = RECORDED_ENDPOINTS.filter(({ readAnswer }) => readAnswer === readChoicesAnswer).slice(0, 1);

/** What an answer says if it is the data of one event. */
function inEvent(text: string): AnswerFacts[] {
  const bytes = Buffer.from(text);
  const data = { bytes, start: 0, end: bytes.length, isInPlace: true, hasErrorLine: false };
  return ENDPOINTS.map(({ readEvent }) => {
    const { identity, usage, timings, finished } = readEvent(data, new JsonCursor(bytes), true);
    return { identity, usage, timings, finished };
  });
}

/** What an answer says if it comes in these reads. Each read is overwritten after it was given. */
function inReads(reads: readonly Buffer[]): AnswerFacts[] {
  return ENDPOINTS.map(({ wantedOfAnswer, readAnswer }) => {
    const scanner = new MemberScanner(wantedOfAnswer);
    for (const read of reads) {
      const copy = Buffer.from(read);
      scanner.push(copy);
      copy.fill('"');
    }
    return readAnswer(scanner, new JsonCursor(Buffer.alloc(0)));
  });
}

const scalar = fc.constantFrom(
  ...[
    'null',
    'true',
    '0',
    '1',
    '-0',
    '7.5',
    '1e2',
    '1e999',
    '"stop"',
    '"a\\"b"',
    '"st\\u006fp"',
    '"é"',
    '""',
  ],
);
const space = fc.constantFrom('', '', '', ' ', '\n\t');
const objectOf = (...members: fc.Arbitrary<string>[]) =>
  fc
    .tuple(space, fc.array(fc.tuple(fc.oneof(...members), space), { maxLength: 5 }))
    .map(([before, parts]) => `{${before}${parts.map((part) => part.join('')).join()}}`);
const listOf = (...items: fc.Arbitrary<string>[]) =>
  fc
    .tuple(space, fc.array(fc.tuple(space, fc.oneof(...items), space), { maxLength: 3 }))
    .map(([before, parts]) => `[${before}${parts.map((part) => part.join('')).join()}]`);
const memberOf = (names: readonly string[], ...values: fc.Arbitrary<string>[]) =>
  fc
    .tuple(fc.constantFrom(...names), space, space, fc.oneof(...values))
    .map(([name, before, after, value]) => `"${name}"${before}:${after}${value}`);

const nested = objectOf(memberOf(['usage', 'choices', 'index', 'finish_reason', 'x'], scalar));
const choice = objectOf(
  memberOf(['index', 'ind\\u0065x'], scalar),
  memberOf(['finish_reason'], scalar, nested),
  memberOf(['message', 'delta'], objectOf(memberOf(['content', 'finish_reason'], scalar)), scalar),
);
const figures = objectOf(
  memberOf(['prompt_tokens', 'completion_tokens', 'cached_tokens', 'a', '__proto__'], scalar),
  memberOf(['prompt_tokens_details'], scalar, objectOf(memberOf(['cached_tokens', 'x'], scalar))),
);
const answer = fc
  .tuple(
    fc.constantFrom('', '\ufeff', ' '),
    objectOf(
      memberOf(['usage', 'us\\u0061ge'], figures, figures, scalar, listOf(scalar)),
      memberOf(['timings', 'metrics'], figures, figures, scalar),
      memberOf(['choices'], listOf(choice, scalar, listOf(choice)), scalar, choice),
      memberOf(['id', 'model'], scalar, nested),
      memberOf(['x', 'data'], scalar, nested, listOf(nested, scalar)),
    ),
  )
  .map((parts) => parts.join(''));

describe('an answer', () => {
  test('says the same in one event, in one read, cut anywhere, and byte by byte', () => {
    fc.assert(
      fc.property(answer, (text) => {
        const whole = Buffer.from(text);
        const expected = inEvent(text);
        expect(inReads([whole])).toEqual(expected);
        expect(inReads(Array.from(whole, (byte) => Buffer.of(byte)))).toEqual(expected);
        for (let cut = 1; cut < whole.length; cut++) {
          expect(inReads([whole.subarray(0, cut), whole.subarray(cut)]), `cut at ${cut}`).toEqual(expected);
        }
      }),
      { numRuns: runs(200) },
    );
  });

  test.each([
    ['{"choices":[{"index":3,"index":"x","finish_reason":"stop"}]}', [{ index: 0, reason: 'stop' }]],
    ['{"choices":[{"index":1,"finish_reason":"stop","finish_reason":null}]}', []],
    ['{"choices":[{"finish_reason":"no"}],"choices":[]}', []],
    ['{"choices":[null,{"finish_reason":"stop"}],"choices":null}', [{ index: 1, reason: 'stop' }]],
  ])('%s has these finished choices', (text, finished) => {
    for (const facts of [...inEvent(text), ...inReads([Buffer.from(text)])]) {
      expect(facts.finished).toEqual(finished);
    }
  });
});
