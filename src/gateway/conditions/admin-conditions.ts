import type { FailedTokens } from '#admin';
import type { Producer } from '#conditions';
import { RecentCount } from './recent-count.ts';

/** Fewer in a minute are somebody who mistypes. */
const MANY = 10;

/** For so long after the last one it is told. */
const LASTS_SECONDS = 10;

/** Many calls of the admin API with wrong tokens. `nowMs`: monotonic milliseconds. */
export function createAdminProducer(
  failedTokens: Pick<FailedTokens, 'count'>,
  nowMs: () => number,
): Producer {
  const recent = new RecentCount(nowMs);
  let seen = 0;
  return () => {
    const { count } = failedTokens;
    if (count > seen) recent.add(count - seen);
    seen = count;
    const refused = recent.inLast(60);
    if (refused < MANY || recent.inLast(LASTS_SECONDS) === 0) return [];
    return [{ id: 'admin_tokens_refused', subject: '', figures: { refused } }];
  };
}
