import { z } from 'zod';
import { StartError } from '#base';
import { memberOf } from '#base/parsed';
import { type AdminClient, RefusedError } from '#cli/admin-client';
import { toOneLine } from '#cli/terminal';
import { rolloutFacts } from '#rollout-board/facts';
import type { Ask } from './steering.ts';

const {
  ask: askSchema,
  plan,
  run,
  trace_id,
  root_span_id,
  given_up,
  started_at,
  replicas,
} = rolloutFacts.shape;

/** What a gateway knows of a rollout, as far as it takes to go on with it. */
const shownRollout = z.object({
  run,
  trace_id,
  root_span_id,
  given_up,
  started_at,
  plan,
  state: z.string(),
  replica_count: z.int(),
  driver: z.object({ user: z.string(), host: z.string() }),
  replicas: z.array(replicas.unwrap().element.pick({ name: true, stage: true, text: true })).readonly(),
});

/** A rollout as a gateway shows it. */
export type ShownRollout = z.output<typeof shownRollout>;

/** Reads what is asked of a rollout; null if the answer does not say it. */
export function readAsk(answer: unknown): Ask | null {
  return askSchema.safeParse(memberOf(answer, 'ask')).data ?? null;
}

/** Asks the gateways for a rollout: the one that has the latest run. Null: none of them knows it. Throws a StartError. */
export async function findRollout(
  clients: readonly AdminClient[],
  id: string,
  signal: AbortSignal,
): Promise<ShownRollout | null> {
  const found = await Promise.all(clients.map((client) => showRollout(client, id, signal)));
  const known = found.filter((each) => each !== null);
  return known.toSorted((a, b) => b.run - a.run)[0] ?? null;
}

async function showRollout(
  client: AdminClient,
  id: string,
  signal: AbortSignal,
): Promise<ShownRollout | null> {
  try {
    const answer = await client.call('GET', `/admin/rollouts/${encodeURIComponent(id)}`, signal);
    const parsed = shownRollout.safeParse(answer);
    if (parsed.success) return parsed.data;
    throw new StartError(`${client.baseUrl} says of the rollout ${toOneLine(id)} what is not understood`);
  } catch (error) {
    // A gateway of an older version has no such path.
    if (error instanceof RefusedError && /^(?:rollout_)?not_found$/.test(error.code)) return null;
    throw error;
  }
}
