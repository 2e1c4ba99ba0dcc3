import type { DatabaseSync } from 'node:sqlite';
import { AttributesDigester, DIGEST_BYTES } from '#otel/otlp';
import { toKey } from '../block-keys.ts';
import type { StatementAnswer, StatementQuery } from '../query.ts';
import { readLosses } from '../store/loss-store.ts';
import type { Pace } from './pace.ts';
import { searchBlocks, toRange } from './query-records.ts';

/** Lists the records of a tenant with the digests that the ledger has of them, and on the first page what was not exported. */
export async function queryStatement(
  db: DatabaseSync,
  { tenant, fromMs, untilMs, before, limit }: StatementQuery,
  pace: Pace,
): Promise<Pick<StatementAnswer, 'records' | 'next' | 'damagedBlocks' | 'losses'>> {
  const digester = new AttributesDigester();
  const found = await searchBlocks(db, pace, {
    ...{ fromMs, untilMs, ranges: [toRange(before)], limit },
    names: [toKey('tenant', tenant)],
    matches: (record) => record.tenant === tenant,
    mayMatch: (encodedSpan) => encodedSpan.includes(tenant),
    toItem: (record, { encodedSpan }) => {
      const digest = digester.digestSpan(encodedSpan)?.subarray(0, DIGEST_BYTES);
      return { record, digest: digest?.toString('base64') ?? '' };
    },
  });
  // Those that become known while pages are read are of no page before.
  const losses = before === null ? readLosses(db, fromMs) : [];
  return { ...found, losses };
}
