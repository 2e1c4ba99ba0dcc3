import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PrefixHits } from '../../../src/records/trace/prefix-hits.ts';
import { hashesOf, request, texts } from './requests.ts';

const HASH_TOKENS = 10;

function summarize(all: readonly Parameters<typeof request>[0][]) {
  const hits = new PrefixHits(HASH_TOKENS);
  for (const members of all) hits.add(request(members));
  return hits.summarize();
}

/** Returns how many first blocks of the text were seen before, and marks all as seen. */
function hitLetters(seen: Set<string>, text: string): number {
  const prefixes = [...text].map((_, index) => text.slice(0, index + 1));
  const count = prefixes.filter((prefix) => seen.has(prefix)).length;
  for (const prefix of prefixes) seen.add(prefix);
  return count;
}

describe('the possible shares', () => {
  test('are what caches that never evict would hit', () => {
    const requests = fc.array(fc.record({ text: texts, replica: fc.constantFrom('a', 'b', 'c') }), {
      minLength: 1,
    });
    fc.assert(
      fc.property(requests, (all) => {
        const shared = new Set<string>();
        const own = { a: new Set<string>(), b: new Set<string>(), c: new Set<string>() };
        const tokens = all.map(({ text }) => HASH_TOKENS * text.length + 5);
        const sharedHits = all.map(({ text }) => HASH_TOKENS * hitLetters(shared, text));
        const ownHits = all.map(({ text, replica }) => HASH_TOKENS * hitLetters(own[replica], text));
        const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

        const summary = summarize(
          all.map(({ text, replica }, index) => ({
            replica,
            inputTokens: tokens[index] ?? 0,
            hashes: hashesOf(text),
          })),
        );
        expect(summary.all).toEqual({
          requests: all.length,
          input_tokens: sum(tokens),
          measured: null,
          possible_as_routed: sum(ownHits) / sum(tokens),
          possible_shared: sum(sharedHits) / sum(tokens),
        });
        for (const { replica, ...shares } of summary.replicas) {
          const of = (numbers: readonly number[]) =>
            sum(numbers.filter((_, index) => all[index]?.replica === replica));
          expect(shares).toMatchObject({
            input_tokens: of(tokens),
            possible_as_routed: of(ownHits) / of(tokens),
            possible_shared: of(sharedHits) / of(tokens),
          });
        }
      }),
    );
  });

  test('a prompt that changes replicas is cached by the replica that saw it, and by a shared cache', () => {
    const one = { inputTokens: 25, hashes: hashesOf('xy') };
    const { replicas, all } = summarize([
      { ...one, replica: 'a' },
      { ...one, replica: 'b' },
      { ...one, replica: 'a' },
    ]);
    expect(replicas).toMatchObject([
      { replica: 'a', requests: 2, possible_as_routed: 20 / 50, possible_shared: 20 / 50 },
      { replica: 'b', requests: 1, possible_as_routed: 0, possible_shared: 20 / 25 },
    ]);
    expect(all).toMatchObject({ possible_as_routed: 20 / 75, possible_shared: 40 / 75 });
  });

  test('never exceed the input, even if tokens are longer than assumed', () => {
    const one = { inputTokens: 7, hashes: hashesOf('x') };
    expect(summarize([one, one]).all.possible_shared).toBe(0.5);
  });
});

describe('the measured share', () => {
  test('covers the requests whose engine reports it', () => {
    const { all } = summarize([
      { inputTokens: 100, cachedTokens: 40 },
      { inputTokens: 100, cachedTokens: 0 },
      { inputTokens: 800 },
    ]);
    expect(all).toMatchObject({ requests: 3, input_tokens: 1000, measured: 0.2 });
  });

  test('is unknown if no engine reports it', () => {
    expect(summarize([{ inputTokens: 100 }]).all.measured).toBeNull();
  });
});

test('characters per token are measured over the requests that report both', () => {
  const summary = summarize([
    { inputTokens: 100, promptChars: 420 },
    { inputTokens: 100, promptChars: 380, hashes: hashesOf('x') },
    { inputTokens: 1000 },
  ]);
  expect(summary).toMatchObject({ chars_per_token: 4, requests_without_hashes: 2 });
  expect(summarize([]).chars_per_token).toBeNull();
});
