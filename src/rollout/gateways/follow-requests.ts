import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, UnreachableError } from '#cli/admin-client';
import type { Observation } from '#verdict';
import { toObservation } from '../compare/to-observation.ts';

/** The requests that have ended since the look before. */
export interface Followed {
  readonly observations: readonly Observation[];
  /** How many of them are not known, because the gateway did not keep them for so long. */
  readonly missed: number;
  /** `prefix_affinity` if any gateway has this policy. */
  readonly policy: string;
}

/** The most requests in an answer of the gateway. */
const FULL_ANSWER = 10_000;

/** A gateway whose requests are followed: the number of the last one, and when it started; undefined before a look. */
interface FollowedGateway {
  readonly client: AdminClient;
  last: number;
  startedAt: unknown;
}

/** Begins to follow the requests of gateways: each look returns those that have ended since the look before. */
export async function followRequests(
  clients: readonly AdminClient[],
  signal: AbortSignal,
): Promise<() => Promise<Followed>> {
  const followed = clients.map((client): FollowedGateway => ({ client, last: 0, startedAt: undefined }));
  // What ended before is not followed. A gateway that does not answer now begins later.
  await lookAtAll(followed, signal).catch((error: unknown) => {
    if (!(error instanceof UnreachableError)) throw error;
  });
  return () => lookAtAll(followed, signal);
}

async function lookAtAll(followed: readonly FollowedGateway[], signal: AbortSignal): Promise<Followed> {
  const looks: Followed[] = [];
  for (const each of followed) {
    // An answer holds so many at most.
    for (;;) {
      const found = await look(each, signal);
      each.last = found.last;
      each.startedAt = found.startedAt;
      looks.push(found);
      if (found.observations.length < FULL_ANSWER) break;
    }
  }
  return {
    observations: looks.flatMap(({ observations }) => observations),
    missed: looks.reduce((sum, { missed }) => sum + missed, 0),
    policy: looks.some(({ policy }) => policy === 'prefix_affinity') ? 'prefix_affinity' : 'other',
  };
}

async function look({ client, last, startedAt }: Readonly<FollowedGateway>, signal: AbortSignal) {
  const answer = await client.call('GET', `/admin/observations?after=${last}`, signal);
  const present = memberOf(answer, 'started_at');
  // The numbers of a gateway that has restarted began again.
  const isNew = startedAt !== undefined && present !== startedAt;
  const valid = isNew ? await client.call('GET', '/admin/observations', signal) : answer;
  const isFirst = startedAt === undefined;
  return {
    observations: isFirst ? [] : itemsOf(valid, 'observations').flatMap((item) => toObservation(item) ?? []),
    last: Number(memberOf(valid, 'last')) || 0,
    missed: isFirst || isNew ? 0 : Number(memberOf(valid, 'missed')) || 0,
    policy: String(memberOf(valid, 'routing_policy')),
    startedAt: present,
  };
}
