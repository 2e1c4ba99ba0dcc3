import type { DatabaseSync } from 'node:sqlite';
import { AttributesDigester, DIGEST_BYTES } from '#otel/otlp';
import { toKey } from '../block-keys.ts';
import type { QueryRefusal } from '../messages.ts';
import {
  type Answer,
  ENDED_REASONS,
  type Filters,
  type Gap,
  type GapReason,
  joinGaps,
  type Query,
  type Span,
  type StatementAnswer,
  type StatementQuery,
  type TimelineQuery,
} from '../query.ts';
import { FILE_NUMBERS } from '../store/database.ts';
import type { HistoryStore } from '../store/history-store.ts';
import { readLosses } from '../store/loss-store.ts';
import { toCondition } from '../store/schema.ts';
import { toEvent } from '../store/timeline-store.ts';
import { Pace } from './pace.ts';
import { EVER, findRecords, listRecords, NAMES, searchBlocks, toRange } from './query-records.ts';
import { queryUsage } from './query-usage.ts';

/** An answer names so many gaps at most, the latest ones; those before are told as one for each reason. */
const MAX_GAPS = 100;
/** Gaps by when records ended may lack some of a span that ended before: few requests take longer. */
const LONG_MS = 3_600_000;
const BY_END = `reason IN ('${ENDED_REASONS.join("', '")}')`;
/** What nobody has heard of is among the losses alone; what could not be encoded is a gap of its own. */
const GAPS = `(SELECT * FROM gaps UNION ALL SELECT from_ms, to_ms, last_seq - first_seq + 1, 'lost' FROM losses
  WHERE is_known = 0 AND why <> 'unencodable')`;

/** Answers a query from the database. What is kept may become less while it takes, so that is read in the end. */
export async function runQuery(store: HistoryStore, query: Query): Promise<Answer | QueryRefusal> {
  const pace = new Pace();
  const { db } = store;
  const waiting = query.kind === 'find' || query.kind === 'timeline' ? [] : store.settle();
  if ('before' in query && !isOfFile(db, query)) return { kind: 'refused', reason: 'no_such_page' };
  switch (query.kind) {
    case 'find': {
      const found = await findRecords(db, query, pace);
      if (found.records.length === 0 && found.next !== null) return { kind: 'refused', reason: 'too_slow' };
      const gaps = found.records.length > 0 ? [] : readGaps(db, EVER);
      return { kind: 'records', ...found, kept: store.kept(), gaps, unknown: [] };
    }
    case 'records': {
      const found = await listRecords(db, query, pace);
      const unknown = found.records.length > 0 ? [] : findUnknown(db, query.filters);
      return { kind: 'records', ...found, kept: store.kept(), gaps: readGaps(db, query), unknown };
    }
    case 'usage': {
      const usage = await queryUsage(db, query, { readKept: () => store.kept(), pace });
      if (usage === null) return { kind: 'refused', reason: 'too_slow' };
      const unknown = usage.rows.length > 0 ? [] : findUnknown(db, query.filters);
      const unsummed = waiting.filter((gap) => gap.fromMs < query.untilMs && gap.toMs >= query.fromMs);
      return { ...usage, gaps: readGaps(db, query, [...unsummed, ...usage.gaps]), unknown };
    }
    case 'statement': {
      const found = await queryStatement(db, query, pace);
      const { tenant } = query;
      const unknown = found.records.length > 0 ? [] : findUnknown(db, { tenant });
      // Its losses say which are lost.
      const gaps = readGaps(db, query, [], 'gaps');
      return { kind: 'statement', ...found, kept: store.kept(), gaps, unknown };
    }
    case 'timeline':
      return { kind: 'timeline', ...listEvents(db, query), kept: store.kept(), gaps: readGaps(db, query) };
  }
}

/** Whether a page can be one of this file: of another gateway, or of a file that was set aside, it would leave out records. */
function isOfFile(
  db: DatabaseSync,
  { kind, before }: Pick<TimelineQuery, 'before'> & Pick<Query, 'kind'>,
): boolean {
  if (before === null) return true;
  const sql =
    kind === 'timeline'
      ? 'SELECT max(number) + 1 AS next FROM timeline'
      : 'SELECT next_number AS next FROM meta';
  const next = Number(db.prepare(sql).get()?.next ?? 0);
  return before <= next && before > next - (next % FILE_NUMBERS);
}

function listEvents(db: DatabaseSync, { fromMs, untilMs, before, limit }: TimelineQuery) {
  const rows = db
    .prepare(
      `SELECT * FROM timeline WHERE number < ? AND from_ms < ? AND (to_ms IS NULL OR to_ms >= ?)
       ORDER BY number DESC LIMIT ?`,
    )
    .all(before ?? Number.MAX_SAFE_INTEGER, untilMs, fromMs, limit + 1);
  const events = rows.slice(0, limit).map(toEvent);
  return { events, next: rows.length > limit ? (events.at(-1)?.number ?? null) : null };
}

/** The gaps of a span, the latest first, behind `others`. What is beyond the bound is joined: nothing that is missing is left out. */
function readGaps(db: DatabaseSync, span: Span, others: readonly Gap[] = [], table = GAPS): readonly Gap[] {
  const rows = db
    .prepare(
      `SELECT * FROM ${table} WHERE from_ms < ? + ${LONG_MS} * (${BY_END}) AND to_ms >= ? ORDER BY from_ms DESC`,
    )
    .all(span.untilMs, span.fromMs);
  const read = rows.map(({ from_ms, to_ms, records, reason }) => ({
    fromMs: Number(from_ms),
    toMs: Number(to_ms),
    records: records === null ? null : Number(records),
    reason: String(reason) as GapReason,
  }));
  const gaps = [...others, ...read];
  const old = Map.groupBy(gaps.slice(MAX_GAPS), ({ reason }) => reason);
  return [...gaps.slice(0, MAX_GAPS), ...old.values().map((each) => each.reduce(joinGaps))];
}

/** Which of the names are in no sum that is kept: nobody of that name was ever here. What is summed without names may be anybody's. */
function findUnknown(db: DatabaseSync, filters: Pick<Filters, 'tenant' | 'client' | 'model' | 'replica'>) {
  return NAMES.filter((name) => {
    const value = filters[name];
    const known = db.prepare(`SELECT 1 FROM usage_hours WHERE ${toCondition(name)} LIMIT 1`);
    return value !== undefined && known.get(value) === undefined;
  });
}

/** Lists the records of a tenant with the digests that the ledger has of them, and on the first page what was not exported. */
async function queryStatement(
  db: DatabaseSync,
  { tenant, fromMs, untilMs, before, limit }: StatementQuery,
  pace: Pace,
): Promise<Pick<StatementAnswer, 'records' | 'next' | 'damagedBlocks' | 'losses'>> {
  const digester = new AttributesDigester();
  const found = await searchBlocks(db, pace, {
    fromMs,
    untilMs,
    ranges: [toRange(before)],
    limit,
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
