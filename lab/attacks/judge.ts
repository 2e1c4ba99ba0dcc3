import { isDeepStrictEqual } from 'node:util';
import type { Attack } from './attack.ts';
import type { Cost } from './measured-gateway.ts';
import type { Outcome } from './run-attack.ts';
import type { TlsOutcome } from './tls/run-tls-attack.ts';
import type { TlsAttack } from './tls/tls-attack.ts';

/** No attack may cost more; a gateway that holds what it is sent would need many times as much. */
const MAX_GROWN_BYTES = 150_000_000;

/** What is not as it has to be; empty if the attack failed. */
export function judge(attack: Attack, outcome: Outcome): readonly string[] {
  const { statuses, isComplete = statuses.at(-1) !== 0, seen = [] } = attack;
  return compare(outcome, [
    ['statuses', outcome.statuses, statuses],
    ['the answer is whole', outcome.isComplete, isComplete],
    ['closed, with nothing more', outcome.hasClosed, true],
    ['the replica saw', outcome.seen, seen],
    ['status of the next request', outcome.nextStatus, 200],
  ]);
}

/** What is not as it has to be; empty if the attack failed. */
export function judgeTls({ outcome, effects = 0 }: TlsAttack, found: TlsOutcome): readonly string[] {
  return compare(found, [
    ['outcome', found.outcome, outcome],
    ['calls that took effect', found.effects, effects],
    ['the next requests', found.nextOutcomes, ['200', '200']],
    ['sockets that are left open', found.leftOpen, 0],
  ]);
}

type Pair = readonly [what: string, found: unknown, expected: unknown];

function compare({ grownBytes, defects }: Cost, pairs: readonly Pair[]): readonly string[] {
  const all: readonly Pair[] = [
    ...pairs,
    ['memory is bounded', grownBytes < MAX_GROWN_BYTES, true],
    ['errors in the log', defects, []],
  ];
  return all.flatMap(([what, found, expected]) =>
    isDeepStrictEqual(found, expected)
      ? []
      : [`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`],
  );
}
