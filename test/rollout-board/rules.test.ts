import fc from 'fast-check';
import { expect, test } from 'vitest';
import { replicaFacts, rolloutFacts } from '#testkit/rollout-facts.ts';
import { mergeFacts } from '../../src/rollout-board/rules.ts';

/** A report of the one driver of a run. Of the same number there is one. */
const report = fc.integer({ min: 1, max: 12 }).map((seq) =>
  rolloutFacts({
    seq,
    sentence: `report ${seq}`,
    replicas: [replicaFacts(seq % 2 === 0 ? 'a' : 'b', { seq, text: `at ${seq}` })],
  }),
);
const asked = fc
  .record({ version: fc.integer({ min: 1, max: 4 }), kind: fc.constantFrom('go', 'pause', 'abort') })
  .map((ask) => rolloutFacts({ seq: 0, sentence: 'asked', ask: { ...ask, by: ask.kind }, replicas: [] }));

test('gateways that hear the same in another order, or twice, know the same', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(report, asked), { minLength: 1, maxLength: 12 }),
      fc.infiniteStream(fc.nat()),
      (news, order) => {
        const known = (list: typeof news) => {
          const { replicas, ask, sentence } = list.reduce(
            mergeFacts,
            rolloutFacts({ seq: 0, sentence: 'first' }),
          );
          const sorted = replicas.toSorted((a, b) => (a.name < b.name ? -1 : 1));
          // What was asked of one gateway says nothing of how the rollout is.
          return { sorted, ask, sentence: sentence === 'asked' ? 'first' : sentence };
        };
        const other = [...news, ...news].map((each) => [order.next().value ?? 0, each] as const);
        const shuffled = other.toSorted(([a], [b]) => a - b).map(([, each]) => each);
        expect(known(shuffled)).toEqual(known(news));
      },
    ),
  );
});

test('an abort is for good, and of two at once the more careful one holds', () => {
  const ask = (kind: 'go' | 'pause' | 'abort', version: number) =>
    rolloutFacts({ ask: { kind, version, by: null } });
  expect(mergeFacts(ask('abort', 1), ask('go', 9)).ask.kind).toBe('abort');
  expect(mergeFacts(ask('go', 2), ask('pause', 2)).ask.kind).toBe('pause');
  expect(mergeFacts(ask('pause', 2), ask('go', 3)).ask.kind).toBe('go');
});
