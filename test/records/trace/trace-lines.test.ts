import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BlockSizes, createTraceLines } from '../../../src/records/trace/trace-lines.ts';
import { readTrace } from './replay.ts';
import { hashesOf, request, sharedLetters, texts } from './requests.ts';

/** A hash is 4 tokens, and so is a block of the trace. */
const SIZES: BlockSizes = { blockTokens: 4, blockChars: 16, charsPerToken: 4 };

function traceOf(requests: readonly Parameters<typeof request>[0][], sizes: BlockSizes = SIZES) {
  const toLine = createTraceLines(sizes);
  return readTrace(requests.map((members) => toLine(request(members))).join(''), sizes.blockTokens);
}

describe('a trace', () => {
  test('has the format of the published traces', () => {
    const toLine = createTraceLines(SIZES);
    const lines = [
      toLine(request({ atMs: 1000, inputTokens: 9, outputTokens: 2, hashes: hashesOf('xx') })),
      toLine(request({ atMs: 1250, inputTokens: 8, outputTokens: 3, hashes: hashesOf('xy') })),
      toLine(request({ atMs: 1250, inputTokens: 2, outputTokens: 4 })),
    ];
    expect(lines).toEqual([
      '{"timestamp": 0, "input_length": 9, "output_length": 2, "hash_ids": [0, 1, 2]}\n',
      '{"timestamp": 250, "input_length": 8, "output_length": 3, "hash_ids": [0, 3]}\n',
      '{"timestamp": 250, "input_length": 2, "output_length": 4, "hash_ids": [4]}\n',
    ]);
  });

  test('has as many shared whole blocks, for a replay tool, as the texts', () => {
    const requests = fc.array(fc.record({ text: texts, restTokens: fc.integer({ min: 0, max: 3 }) }));
    fc.assert(
      fc.property(requests, (all) => {
        const members = all.map(({ text, restTokens }) => ({
          inputTokens: 4 * text.length + restTokens,
          hashes: hashesOf(text),
        }));
        const replayed = traceOf(members);
        expect(replayed.map(({ tokens }) => tokens.length)).toEqual(members.map((each) => each.inputTokens));
        for (const [i, a] of replayed.entries()) {
          for (const [j, b] of replayed.slice(0, i).entries()) {
            const shared = sharedLetters(all[i]?.text ?? '', all[j]?.text ?? '');
            expect(a.sharedWith(b)).toBe(4 * shared);
          }
        }
      }),
    );
  });

  test('never shares more than the hashes prove, whatever the sizes and token counts', () => {
    const sizes = fc
      .record({
        blockChars: fc.integer({ min: 1, max: 40 }),
        charsPerToken: fc.constantFrom(0.5, 1, 3, 3.7, 4),
        more: fc.integer({ min: 0, max: 40 }),
      })
      .map(({ blockChars, charsPerToken, more }) => ({
        blockChars,
        charsPerToken,
        blockTokens: Math.ceil(blockChars / charsPerToken) + more,
      }));
    const requests = fc.array(fc.record({ text: texts, inputTokens: fc.integer({ min: 0, max: 200 }) }));
    fc.assert(
      fc.property(sizes, requests, (chosen, all) => {
        const members = all.map(({ text, inputTokens }) => ({ inputTokens, hashes: hashesOf(text) }));
        const replayed = traceOf(members, chosen);
        for (const [i, a] of replayed.entries()) {
          for (const [j, b] of replayed.slice(0, i).entries()) {
            const provenChars = chosen.blockChars * sharedLetters(all[i]?.text ?? '', all[j]?.text ?? '');
            expect(a.sharedWith(b) * chosen.charsPerToken).toBeLessThanOrEqual(provenChars);
          }
        }
      }),
    );
  });

  test('numbers ids by first appearance, without gaps', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(texts, fc.integer({ min: 0, max: 40 }))), (all) => {
        let next = 0;
        for (const { ids } of traceOf(
          all.map(([text, inputTokens]) => ({ inputTokens, hashes: hashesOf(text) })),
        )) {
          for (const id of ids) {
            expect(id).toBeLessThanOrEqual(next);
            if (id === next) next += 1;
          }
        }
      }),
    );
  });
});
