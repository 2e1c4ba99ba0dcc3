import { memberOf } from '#base/parsed';
import { conditionsOf, type Look } from './look.ts';

/** 0: nothing is worse than a notice. 1: a warning. 2: a critical condition. 3: a gateway gave no answer. */
export function toExitCode(looks: readonly Look[]): number {
  if (looks.some(({ problem }) => problem !== null)) return 3;
  const codes = looks.flatMap((look) =>
    // A later gateway may have further severities: they are no smaller matter.
    conditionsOf(look).map((condition) => EXIT_CODES.get(memberOf(condition, 'severity')) ?? 2),
  );
  return Math.max(0, ...codes);
}

const EXIT_CODES: ReadonlyMap<unknown, number> = new Map([
  ['critical', 2],
  ['warning', 1],
  ['notice', 0],
]);
