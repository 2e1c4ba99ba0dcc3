import { idleShareOf } from '#access/limits';

/*
 * How gateways divide `max_inflight` of a client. Pure functions: each gateway computes the shares of all from what they
 * told last. The shares of one division never add up to more than the limit.
 */

/**
 * Divides a limit by what the gateways want, in the order of their ranks. Who wants less than its part gets that, and
 * the others share the rest evenly (max-min fairness). What nobody wants is divided evenly too, ahead of new requests.
 */
export function splitInflight(limit: number, wanted: readonly number[]): readonly number[] {
  const shares = wanted.map(() => 0);
  let rest = limit;
  let open = wanted.map((want, rank) => ({ want, rank }));
  while (open.length > 0) {
    const part = Math.floor(rest / open.length);
    const content = open.filter(({ want }) => want <= part);
    if (content.length === 0) break;
    for (const { want, rank } of content) {
      shares[rank] = want;
      rest -= want;
    }
    open = open.filter(({ want }) => want > part);
  }
  const takers = open.length > 0 ? open.map(({ rank }) => rank) : wanted.map((_, rank) => rank);
  for (const [index, rank] of takers.entries()) {
    shares[rank] = (shares[rank] ?? 0) + idleShareOf(rest, takers.length, index);
  }
  return shares;
}
