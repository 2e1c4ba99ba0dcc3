import type { LimitRows } from '#access/limits';
import type { Finding, Producer } from '#conditions';
import { toShownName } from '#otel/base';
import type { ReplicaRegistry } from '#replicas/registry';
import { RecentCount } from './recent-count.ts';

/** Fewer in a minute are what a limit is for. */
const MANY = 3;

/**
 * For so long after the last refused request, the limit counts as reached, and longer while there is no room in it. In a
 * budget of tokens there is nearly always some: clients that need more wait for up to a minute, as Retry-After says.
 */
const LASTS_SECONDS = { max_inflight: 10, requests_per_minute: 10, tokens_per_minute: 60 } as const;

/** Limits beyond this number are not watched: names may come from clients. */
const MAX_WATCHED = 1_000;

type Refusals = ReturnType<LimitRows['takeRefusals']>[number];

/** How many silent streams hold places in limits: by the row of the limit, how many on which replica. */
type SilentHolders = ReturnType<ReplicaRegistry['silentHolders']>;

/** How many replicas are named. */
const LISTED = 3;

/**
 * Limits of clients and tenants that refuse requests, and what holds them. `holders` is asked while there are some. `nowMs`:
 * monotonic milliseconds.
 */
export function createLimitProducer(
  rows: Pick<LimitRows, 'takeRefusals' | 'useOf'>,
  holders: () => SilentHolders,
  nowMs: () => number,
): Producer {
  const watched = new Map<string, { refusals: Refusals; recent: RecentCount; isReached: boolean }>();
  return () => {
    for (const refusals of rows.takeRefusals()) {
      const key = `${refusals.limit} ${refusals.name}`;
      const known = watched.get(key) ?? { refusals, recent: new RecentCount(nowMs), isReached: false };
      if (watched.size < MAX_WATCHED || watched.has(key)) watched.set(key, known);
      known.recent.add(refusals.count);
    }
    if (watched.size === 0) return [];
    const held = holders();
    const found: { readonly finding: Finding; readonly refused: number }[] = [];
    for (const [key, known] of watched) {
      const { refusals, recent } = known;
      const refused = recent.inLast(60);
      if (refused === 0) watched.delete(key);
      // A reload may have taken the limit away.
      const use = rows.useOf(refusals.name, refusals.limit);
      const hasRoom = use === null || use.used < Math.min(use.share, use.allowed);
      const isOver = hasRoom && recent.inLast(LASTS_SECONDS[refusals.limit]) === 0;
      known.isReached = refused >= (known.isReached ? 1 : MANY) && !isOver;
      if (known.isReached && use !== null)
        found.push({ finding: toFinding(refusals, refused, use, held), refused });
    }
    // Of several limits of one client or tenant the board takes the first.
    return found.sort((a, b) => b.refused - a.refused).map(({ finding }) => finding);
  };
}

function toFinding(
  { owner, of, limit }: Refusals,
  refused: number,
  { used, allowed, share, row }: NonNullable<ReturnType<LimitRows['useOf']>>,
  holders: SilentHolders,
): Finding {
  const ofShare = share < allowed ? `, this gateway may use ${share} of it` : '';
  const bySilent = row === null ? undefined : holders.get(row);
  const silent = [...(bySilent?.values() ?? [])].reduce((sum, count) => sum + count, 0);
  return {
    id: owner === 'client' ? 'client_limit_reached' : 'tenant_limit_reached',
    subject: toShownName(of),
    figures: { limit, allowed, used, refused, silent, held: ofShare + toHeld(silent, bySilent) },
  };
}

/** `, 20 places are held by silent streams at r3`; nothing if none is. */
function toHeld(silent: number, byReplica: ReadonlyMap<string, number> | undefined): string {
  if (byReplica === undefined) return '';
  const most = [...byReplica].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const listed = most
    .slice(0, LISTED)
    .map(([name, count]) => (most.length === 1 ? name : `${name} (${count})`));
  const rest = most.length - listed.length;
  const names = rest > 0 ? `${listed.join(', ')} and ${rest} more replicas` : listed.join(', ');
  const places =
    silent === 1 ? '1 place is held by a silent stream' : `${silent} places are held by silent streams`;
  return `, ${places} at ${names}`;
}
