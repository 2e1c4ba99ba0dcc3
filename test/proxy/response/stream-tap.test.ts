import { describe, expect, test } from 'vitest';
import type { StreamChunk } from '../../../src/proxy/response/events/stream-chunk.ts';
import type { ResponseFields } from '../../../src/proxy/response/response-fields.ts';
import { StreamTap } from '../../../src/proxy/response/stream-tap.ts';
import { UsageTally } from '../../../src/proxy/response/usage-tally.ts';

const CHUNK = {
  kind: 'object',
  identity: null,
  usage: null,
  timings: null,
  finished: [],
  hasOutput: false,
  text: null,
  hasError: false,
  hasEmptyChoices: false,
  choiceIndex: null,
  usageMember: null,
} as unknown as StreamChunk;

/** A tap of a request that arrived at 100 ms. */
function open(needsEndMark = true) {
  const settings = {
    choicesPerPrompt: 1,
    isTotalPerChoice: false,
    endpoint: { usageInStream: 'last' },
  } as const;
  const tap = new StreamTap(100, { needsEndMark }, new UsageTally(settings));
  const fields = () => {
    const filled: ResponseFields = {};
    tap.fill(filled);
    return filled;
  };
  const take = (changes: Partial<StreamChunk>, atMs = 0) =>
    tap.observe({ ...CHUNK, ...changes }, false, atMs);
  return { tap, fields, take };
}

describe('what a stream says', () => {
  test('is not whole before its first event', () => {
    expect(open().tap.isWhole).toBe(false);
  });

  test('is where its tokens come from: nowhere, what came before it broke off, or its end', () => {
    const { fields, take } = open();
    take({ usage: { completionTokens: 0 }, choiceIndex: 0 });
    expect(fields().usage_source).toBe('absent');
    take({ usage: { promptTokens: 3, completionTokens: 1 }, choiceIndex: 0 });
    expect(fields().usage_source).toBe('progressive');
    take({ usage: { promptTokens: 3, completionTokens: 2 }, hasEmptyChoices: true });
    expect(fields()).toMatchObject({ completion_tokens: 2, usage_source: 'final' });
    const ended = open();
    ended.take({ usage: { promptTokens: 3, completionTokens: 1 }, choiceIndex: 0 });
    ended.take({ kind: 'done' });
    expect(ended.fields().usage_source).toBe('final');
  });

  test('is asked for its model until it has told it', () => {
    const { tap, take } = open();
    take({ identity: { id: 'r', model: null } });
    expect(tap.wantsIdentity).toBe(true);
  });

  test('is nothing at first, and nothing by an event without data', () => {
    const { tap, fields } = open();
    tap.observe(null, false, 5);
    const { isDone, hasError, isWhole, wantsIdentity, responseId, outputCount, usage } = tap;
    expect({ isDone, hasError, isWhole, wantsIdentity, responseId, outputCount, usage }).toEqual({
      isDone: false,
      hasError: false,
      isWhole: false,
      wantsIdentity: true,
      responseId: null,
      outputCount: 0,
      usage: {},
    });
    expect(fields()).toEqual({ usage_source: 'absent' });
  });

  test.each([
    ['its end mark', true, { kind: 'done' }, true],
    ['a finish reason, where that is enough', false, { finished: [{ index: 0, reason: 'stop' }] }, true],
    ['a finish reason, where it is not', true, { finished: [{ index: 0, reason: 'stop' }] }, false],
    ['other events, where a finish reason would be enough', false, {}, false],
  ] as const)('shows by %s whether it is whole', (_, needsEndMark, chunk, isWhole) => {
    const { tap, take } = open(needsEndMark);
    take(chunk);
    expect([tap.isWhole, tap.isDone]).toEqual([isWhole, 'kind' in chunk]);
  });

  test('is not whole before each of its choices has ended: what it has said of tokens is not final', () => {
    const { tap, fields, take } = open(false);
    const usage = { promptTokens: 3, completionTokens: 2 };
    take({ usage, choiceIndex: 0 });
    take({ usage, choiceIndex: 1 });
    take({ usage, choiceIndex: 1, finished: [{ index: 1, reason: 'length' }] });
    expect([tap.isWhole, fields().usage_source]).toEqual([false, 'progressive']);
    take({ usage, choiceIndex: 0, finished: [{ index: 0, reason: 'stop' }] });
    expect([tap.isWhole, fields().usage_source]).toEqual([true, 'final']);
    expect(fields().finish_reasons).toEqual(['stop', 'length']);
  });

  test('is whole if its last event was too large to be read', () => {
    const { tap, take } = open();
    tap.noteUnread();
    expect(tap.isWhole).toBe(true);
    take({});
    expect(tap.isWhole).toBe(false);
    tap.noteUnread();
    tap.observeOutput(5);
    expect(tap.isWhole).toBe(false);
  });

  test('is an error by a line of its own, or by its data', () => {
    const byLine = open().tap;
    byLine.observe(null, true, 0);
    expect(byLine.hasError).toBe(true);
    const { tap, take } = open();
    take({ hasError: true });
    take({});
    expect(tap.hasError).toBe(true);
  });

  test('is its id and its model, from the first events that have them', () => {
    const { tap, take, fields } = open();
    take({ identity: { id: null, model: 'm' } });
    expect([tap.wantsIdentity, tap.responseId]).toEqual([true, null]);
    take({ identity: { id: 'r', model: 'other' } });
    take({ identity: { id: 'other', model: null } });
    expect([tap.wantsIdentity, tap.responseId]).toEqual([false, 'r']);
    expect(fields()).toMatchObject({ response_id: 'r', response_model: 'm' });
  });

  test('are the timings that came last, and the finish reasons of its choices', () => {
    const { take, fields } = open();
    take({ timings: { a: 1 }, finished: [{ index: 1, reason: 'stop' }] });
    take({ timings: { a: 2 }, finished: [{ index: 0, reason: 'length' }] });
    take({});
    expect(fields()).toMatchObject({ timings: { a: 2 }, finish_reasons: ['length', 'stop'] });
  });
});

describe('the output of a stream', () => {
  test('has the time to the first of it, the gaps in it, and the tokens per second after the first', () => {
    const { tap, take, fields } = open();
    take({ hasOutput: true }, 150);
    expect(fields()).toEqual({ ttft_ms: 50, usage_source: 'absent' });
    for (const atMs of [250, 350]) tap.observeOutput(atMs);
    take({ usage: { completionTokens: 5 }, hasEmptyChoices: true }, 900);
    expect(tap.outputCount).toBe(3);
    expect(fields()).toMatchObject({ ttft_ms: 50, completion_tokens: 5, tokens_per_second: 20 });
    expect(fields().gap_p50_ms).toBeCloseTo(100, -1);
    expect(fields().gap_p95_ms).toBeCloseTo(100, -1);
  });

  test.each([
    ['all of it came at once', [150, 150], 5],
    ['there is one token', [150, 250], 1],
    ['nobody counted them', [150, 250], undefined],
    ['there is none', [], 5],
  ])('has no rate where %s', (_, times, completionTokens) => {
    const { take, fields } = open();
    for (const atMs of times) take({ hasOutput: true }, atMs);
    if (completionTokens !== undefined) take({ usage: { completionTokens } });
    expect(fields()).not.toHaveProperty('tokens_per_second');
  });

  test('has a rate from two tokens on', () => {
    const { take, fields } = open();
    for (const atMs of [150, 250]) take({ hasOutput: true }, atMs);
    take({ usage: { completionTokens: 2 } });
    expect(fields().tokens_per_second).toBe(10);
  });
});

describe('the longest silence of a stream', () => {
  const read = (arrivalsMs: readonly number[], endMs: number) => {
    const { tap, take } = open();
    for (const atMs of arrivalsMs) take({ hasOutput: true }, atMs);
    const record: Parameters<typeof tap.fill>[0] = { e2e_ms: endMs };
    tap.fill(record);
    return { ms: record.silence_ms, afterMs: record.silence_after_ms };
  };

  test('is that between two events with output, and when it began', () => {
    expect(read([150, 250, 2_750, 2_800], 2_750)).toEqual({ ms: 2_500, afterMs: 150 });
  });

  test('is that before the end, where the stream broke off in it', () => {
    expect(read([150, 1_250, 1_300], 61_200)).toEqual({ ms: 60_000, afterMs: 1_200 });
    expect(read([150], 5_050)).toEqual({ ms: 5_000, afterMs: 50 });
  });

  test.each([
    ['it is shorter than a second', [150, 1_140], 1_050],
    ['nothing came at all', [], 60_000],
  ])('is not told where %s', (_, arrivalsMs, endMs) => {
    expect(read(arrivalsMs, endMs)).toEqual({ ms: undefined, afterMs: undefined });
  });
});

describe('the usage of a stream', () => {
  const zeros = { usage: { promptTokens: 0, completionTokens: 0 } };

  test.each<readonly [string, Partial<StreamChunk>, readonly Partial<StreamChunk>[], boolean]>([
    ['at the end of one without output', { hasEmptyChoices: true }, [], true],
    [
      'at the end of a choice without output',
      { choiceIndex: 0, finished: [{ index: 0, reason: 'stop' }] },
      [],
      true,
    ],
    ['before the end', {}, [], false],
    ['after output', { hasEmptyChoices: true }, [{ hasOutput: true }], false],
    ['with output', { hasEmptyChoices: true, hasOutput: true }, [], false],
  ])('is zeros only %s', (_, chunk, before, counts) => {
    const { tap, take } = open();
    for (const each of before) take(each);
    take({ ...zeros, ...chunk });
    expect(tap.usage).toEqual(counts ? zeros.usage : {});
  });

  test('is that of its choice, except on an event without choices', () => {
    const { tap, take } = open();
    take({ usage: { completionTokens: 1 }, choiceIndex: 0 });
    take({ usage: { completionTokens: 2 }, choiceIndex: 1 });
    expect(tap.usage).toEqual({ completionTokens: 3 });
    take({ usage: { completionTokens: 9 }, choiceIndex: 1, hasEmptyChoices: true });
    expect(tap.usage).toEqual({ completionTokens: 9 });
  });
});
