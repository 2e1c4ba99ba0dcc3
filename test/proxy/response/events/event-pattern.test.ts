import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { createEventRelay, undoRulesOf } from '#testkit/reading/response-reading.ts';
import { runs } from '#testkit/runs.ts';
import { EventPattern } from '../../../../src/proxy/response/events/event-pattern.ts';
import { EventScratch } from '../../../../src/proxy/response/events/event-scratch.ts';

const EVENT = 'data: {"choices":[{"delta":{"content":"one"},"finish_reason":null}]}\n\n';

/** A pattern of an event in which `one` is the text. */
function patternOf(event: string): EventPattern {
  const pattern = new EventPattern(new EventScratch());
  const bytes = Buffer.from(event);
  const start = bytes.indexOf('one');
  pattern.remember(bytes, 0, bytes.length, { start, end: start + 3 });
  return pattern;
}

const withText = (json: string) => EVENT.replace('one', json);

describe('an event pattern', () => {
  test.each([['two'], [''], ['ü€𝄞'], ['a\\nb'], ['\\"\\\\'], ['\\ud834\\udd1e'], ['one'], ['}\\n\\n']])(
    'is that of an event with the text %j',
    (json) => {
      const event = Buffer.from(`xx${withText(json)}data:`);
      const pattern = patternOf(EVENT);
      expect(pattern.match(event, 2)).toBe(event.length - 5);
      expect(pattern.hasText).toBe(json !== '');
    },
  );

  test.each([
    ['another member before', withText('two').replace('choices', 'choicez')],
    ['another member behind', withText('two').replace('null', 'true')],
    ['a text with a control character', withText('a\nb')],
    ['a text with a bad escape', withText('a\\x')],
    ['a text that ends early', withText('a"b')],
    ['a text that does not end', 'data: {"choices":[{"delta":{"content":"two'],
    ['a text that ends in an escape', 'data: {"choices":[{"delta":{"content":"two\\'],
    ['an end that is cut', withText('two').slice(0, -1)],
    ['a beginning that is cut', 'data: {"cho'],
    ['nothing', ''],
  ])('is not that of %s', (_what, event) => {
    expect(patternOf(EVENT).match(Buffer.from(event), 0)).toBe(-1);
  });

  test('matches nothing before the first event, nor an event whose end shows only in the next', () => {
    expect(new EventPattern(new EventScratch()).match(Buffer.from(EVENT), 0)).toBe(-1);
    const ofCr = EVENT.replaceAll('\n', '\r');
    expect(patternOf(ofCr).match(Buffer.from(ofCr), 0)).toBe(-1);
  });

  test('does not remember a very long event, unless only its text is long', () => {
    const long = EVENT.replace('null', `"${'x'.repeat(3000)}"`);
    expect(patternOf(long).match(Buffer.from(long), 0)).toBe(-1);
    const longText = Buffer.from(withText('x'.repeat(100_000)));
    expect(patternOf(EVENT).match(longText, 0)).toBe(longText.length);
  });

  test('has no text before it has matched', () => {
    expect(patternOf(EVENT).hasText).toBe(false);
  });

  test.each([0, 1, 2, 3])('counts every byte outside of its text, with %d more at both sides', (count) => {
    const blanks = ' '.repeat(count);
    const event = `data: ${blanks}${EVENT.slice(6, -2)}${blanks}\n\n`;
    const pattern = patternOf(event);
    const text = event.indexOf('one');
    for (let at = 0; at < event.length; at++) {
      const changed = Buffer.from(`${event}data`);
      changed[at] = (changed[at] as number) ^ 1;
      const isText = at >= text && at < text + 3;
      expect(pattern.match(changed, 0)).toBe(isText ? event.length : -1);
    }
  });

  test.each(['a b', ' ', '!'])('may have %j in its text', (json) => {
    expect(patternOf(EVENT).match(Buffer.from(withText(json)), 0)).toBe(withText(json).length);
  });

  test.each(['a\nb', 'a\\x', 'a', '\\'])('does not end in what was read before: %j', (json) => {
    const [before = '', after = ''] = EVENT.split('one');
    const read = `x${after}`;
    expect(patternOf(EVENT).match(Buffer.from(`${read}${before}${json}`), read.length)).toBe(-1);
  });

  test.each([
    [2048, true],
    [2049, false],
  ])('is remembered up to 2048 bytes without its text: %d', (size, isRemembered) => {
    for (const text of ['', 'x'.repeat(3000)]) {
      const event = EVENT.replace('null', `"${'x'.repeat(size - EVENT.length + 3 - 2 + 4)}"`).replace(
        'one',
        text,
      );
      expect(event.length - text.length).toBe(size);
      const bytes = Buffer.from(`data: before\n\n${event}`);
      const from = bytes.length - event.length;
      const start = bytes.indexOf('"content":"') + 11;
      const pattern = new EventPattern(new EventScratch());
      pattern.remember(bytes, from, bytes.length, { start, end: start + text.length });
      expect(pattern.match(bytes, from)).toBe(isRemembered ? bytes.length : -1);
    }
  });

  test('reads the bytes of a read through one view', () => {
    const scratch = new EventScratch();
    const bytes = Buffer.from('a');
    expect(scratch.memoryOf(bytes)).toBe(scratch.memoryOf(bytes.subarray(1)));
    const other = Buffer.from(new ArrayBuffer(2), 1);
    other[0] = 98;
    expect(scratch.memoryOf(other).getInt8(1)).toBe(98);
  });
});

describe('a stream read by pattern', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 5 }).map((raw) => JSON.stringify(raw)),
    fc.constantFrom('""', '"\\u0061"', '"bad \\x"', '"bad \n"', 'null', '"a"b"', '["x"]', '[]', '{}', '7'),
  );
  const shape = fc.record({
    members: fc.subarray([
      '"id":"1"',
      '"usage":null',
      '"usage":{"completion_tokens":3}',
      '"timings":{"predicted_n":1}',
      '"system_fingerprint":"fp"',
      '"error":null',
      '"error":"no"',
    ]),
    key: fc.constantFrom('content', 'reasoning_content', 'refusal', 'tool_calls', 'role', 'con\\u0074ent'),
    other: fc.constantFrom('', '"tool_calls":[],', '"content":"",', '"reasoning":"why",', '"refusal":null,'),
    finish: fc.constantFrom('', ',"finish_reason":null', ',"finish_reason":"stop"'),
    lineEnd: fc.constantFrom('\n', '\n', '\r\n', '\r'),
    before: fc.constantFrom('', '', ': ping\n', 'event: x\n', 'error: {}\n', '\ufeff'),
  });
  const events = fc
    .array(fc.tuple(shape, fc.array(text, { minLength: 1, maxLength: 5 })), { minLength: 1, maxLength: 4 })
    .map((groups) => groups.flatMap(([of, texts]) => texts.map((json) => toEvent(of, json))));

  function toEvent(of: typeof shape extends fc.Arbitrary<infer T> ? T : never, json: string): string {
    const choice = `{"index":0,"delta":{${of.other}"${of.key}":${json}}${of.finish}}`;
    const data = `{${[...of.members, `"choices":[${choice}]`].join()}}`;
    return `${of.before}data: ${data}${of.lineEnd}${of.lineEnd}`;
  }

  /** What goes out and what is recorded; each read comes a millisecond after the one before. */
  function relay(reads: readonly Buffer[], engine: 'vllm' | 'llamacpp' | null) {
    const { tap, events: relayed } = createEventRelay({ undo: engine && undoRulesOf(engine) });
    const out: Buffer[] = [];
    for (const read of reads) out.push(...relayed.push(read, 1));
    out.push(...relayed.end());
    const record: Partial<RequestRecord> = {};
    tap.fill(record);
    const { hasError, isDone, isWhole } = tap;
    return { text: Buffer.concat(out).toString('latin1'), record, hasError, isDone, isWhole };
  }

  test('gives the same as one read byte by byte, where no event can be matched', () => {
    fc.assert(
      fc.property(
        events,
        fc.constantFrom(null, 'vllm' as const, 'llamacpp' as const),
        fc.boolean(),
        (all, engine, isOneRead) => {
          const whole = Buffer.from(all.join(''));
          const reads = isOneRead ? [whole] : all.map((event) => Buffer.from(event));
          const bytes = Array.from(whole, (byte) => Buffer.of(byte));
          expect(relay(reads, engine)).toEqual(relay(bytes, engine));
        },
      ),
      { numRuns: runs(1000) },
    );
  });
});
