import type { LimitRows } from '#access/limits';
import type { Finding, Producer } from '#conditions';
import { toShownName } from '#otel/base';
import { RecentCount } from './recent-count.ts';

/** Fewer in a minute are what a limit is for. */
const MANY = 3;

/** For so long after the last refused request, the limit counts as reached. */
const LASTS_SECONDS = 10;

/** Limits beyond this number are not watched: names may come from clients. */
const MAX_WATCHED = 1_000;

type Refusals = ReturnType<LimitRows['takeRefusals']>[number];

const KEYS = {
  inflight: 'max_inflight',
  requests: 'requests_per_minute',
  tokens: 'tokens_per_minute',
} as const satisfies Readonly<Record<Refusals['limit'], string>>;

/** Limits of clients and tenants that refuse requests. `nowMs`: monotonic milliseconds. */
export function createLimitProducer(
  rows: Pick<LimitRows, 'takeRefusals' | 'useOf'>,
  nowMs: () => number,
): Producer {
  const watched = new Map<string, { readonly refusals: Refusals; readonly recent: RecentCount }>();
  return () => {
    for (const refusals of rows.takeRefusals()) {
      const key = `${refusals.limit} ${refusals.name}`;
      const known = watched.get(key) ?? { refusals, recent: new RecentCount(nowMs) };
      if (watched.size < MAX_WATCHED || watched.has(key)) watched.set(key, known);
      known.recent.add(refusals.count);
    }
    const found: { readonly finding: Finding; readonly refused: number }[] = [];
    for (const [key, { refusals, recent }] of watched) {
      const refused = recent.inLast(60);
      if (refused === 0) watched.delete(key);
      if (refused < MANY || recent.inLast(LASTS_SECONDS) === 0) continue;
      const finding = toFinding(refusals, refused, rows);
      if (finding !== null) found.push({ finding, refused });
    }
    // Of several limits of one client or tenant the board takes the first.
    return found.sort((a, b) => b.refused - a.refused).map(({ finding }) => finding);
  };
}

function toFinding(
  { name, owner, of, limit }: Refusals,
  refused: number,
  rows: Pick<LimitRows, 'useOf'>,
): Finding | null {
  // A reload may have taken the limit away.
  const use = rows.useOf(name, limit);
  if (use === null) return null;
  const { used, allowed, share } = use;
  const held = share < allowed ? `, this gateway may use ${share} of it` : '';
  return {
    id: owner === 'client' ? 'client_limit_reached' : 'tenant_limit_reached',
    subject: toShownName(of),
    figures: { limit: KEYS[limit], allowed, used, refused, held },
  };
}
