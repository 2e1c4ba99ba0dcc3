import { isDeepStrictEqual } from 'node:util';
import type { Attack } from './attack.ts';
import type { Outcome } from './run-attack.ts';

/** No attack may cost more; a gateway that holds what it is sent would need many times as much. */
const MAX_GROWN_BYTES = 150_000_000;

/** What is not as it has to be; empty if the attack failed. */
export function judge(attack: Attack, outcome: Outcome): readonly string[] {
  const { statuses, isComplete = statuses.at(-1) !== 0, seen = [] } = attack;
  const pairs = [
    ['statuses', outcome.statuses, statuses],
    ['the answer is whole', outcome.isComplete, isComplete],
    ['closed, with nothing more', outcome.hasClosed, true],
    ['the replica saw', outcome.seen, seen],
    ['status of the next request', outcome.nextStatus, 200],
    ['memory is bounded', outcome.grownBytes < MAX_GROWN_BYTES, true],
  ] as const;
  return pairs.flatMap(([what, found, expected]) =>
    isDeepStrictEqual(found, expected)
      ? []
      : [`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`],
  );
}
