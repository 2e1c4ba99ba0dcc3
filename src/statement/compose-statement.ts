import type { RecordLoss } from '#otel/ledger';
import type { BilledRecord } from './billed-record.ts';
import type { Month } from './calendar.ts';
import { toSeqText, toSeqTexts } from './seq-texts.ts';
import { type Lack, STATEMENT_VERSION, type StatementBody } from './statement-schema.ts';
import { UsageRows } from './usage-rows.ts';

/** A record of the history, with the first 16 bytes of its digest in base64. */
export interface DigestedBilledRecord extends BilledRecord {
  readonly digest: string;
}

/** Records that were not exported: whose is only known if they have ended (`isKnown`). */
export interface FactsOfLoss extends RecordLoss {
  readonly since: string;
  readonly until: string;
}

/** What the history of one gateway has of a tenant and a month. Times are RFC 3339 in UTC. */
export interface GatewayFacts {
  readonly name: string;
  readonly instanceId: string;
  readonly recordsSince: string;
  readonly lossesSince: string;
  /** Every request that arrived before has ended. */
  readonly endedUntil: string;
  readonly records: readonly DigestedBilledRecord[];
  /** Records of the tenant that have no number. */
  readonly unnumbered: number;
  readonly losses: readonly FactsOfLoss[];
  readonly gaps: readonly {
    readonly since: string;
    readonly until: string;
    readonly records: number | null;
    readonly reason: string;
  }[];
  readonly damagedBlocks: number;
}

/** What a statement is about. */
export interface StatementSubject {
  readonly tenant: string;
  /** Such as `2026-11`. */
  readonly month: string;
  readonly timeZone: string;
  /** RFC 3339 in UTC. */
  readonly madeAt: string;
}

/** Two gateways have the same record: they are one, or one has the history of the other. */
export class SameRecordsError extends Error {
  override readonly name = 'SameRecordsError';
}

/** Makes a statement of what gateways know. Throws a SameRecordsError. */
export function composeStatement(
  gateways: readonly GatewayFacts[],
  { tenant, month, timeZone, madeAt }: StatementSubject,
  { days, since, until }: Month,
): StatementBody {
  const billed = new UsageRows(days);
  const unbilled = new UsageRows(days);
  const records: { instance: string; numbers: readonly string[]; digests: string }[] = [];
  const notExported: { instance: string; why: FactsOfLoss['why']; numbers: readonly string[] }[] = [];
  for (const [instance, own] of [...groupByInstance(gateways)].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const whyOf = createLossLookup(gateways, instance);
    const listed = own.filter(({ seq }) => whyOf(seq) === null);
    for (const record of listed) billed.add(record);
    if (listed.length > 0) {
      const digests = Buffer.concat(listed.map(({ digest }) => Buffer.from(digest, 'base64')));
      const numbers = toSeqTexts(listed.map(({ seq }) => seq));
      records.push({ instance, numbers, digests: digests.toString('base64') });
    }
    for (const [why, lost] of Map.groupBy(own, ({ seq }) => whyOf(seq))) {
      if (why === null) continue;
      for (const record of lost) unbilled.add(record);
      notExported.push({ instance, why, numbers: toSeqTexts(lost.map(({ seq }) => seq)) });
    }
  }
  const running = gateways.filter(({ endedUntil }) => madeAt >= until && endedUntil < until);
  const lacks = [
    ...(madeAt < until ? [{ what: 'month_not_over' } as const] : []),
    ...running.map(
      ({ name, endedUntil: since }) => ({ what: 'requests_running', gateway: name, since }) as const,
    ),
    ...gateways.flatMap((gateway) => toLacks(gateway, { since, until })),
  ];
  return {
    version: STATEMENT_VERSION,
    tenant,
    month,
    time_zone: timeZone,
    since,
    until,
    made_at: madeAt,
    days,
    gateways: gateways.map(({ name, instanceId, recordsSince }) => ({
      name,
      instance_id: instanceId,
      records_since: recordsSince,
    })),
    rows: billed.rows,
    total: billed.total,
    records,
    not_exported: { records: notExported, total: unbilled.total },
    complete: lacks.length === 0,
    lacks,
  };
}

/** The records of each instance in the order of their numbers. */
function groupByInstance(gateways: readonly GatewayFacts[]): Map<string, readonly DigestedBilledRecord[]> {
  const groups = new Map<string, readonly DigestedBilledRecord[]>();
  for (const { records } of gateways) {
    for (const [instance, own] of Map.groupBy(records, (record) => record.instance)) {
      if (groups.has(instance)) throw new SameRecordsError();
      const sorted = own.toSorted((a, b) => a.seq - b.seq);
      groups.set(
        instance,
        sorted.filter(({ seq }, index) => seq !== sorted[index - 1]?.seq),
      );
    }
  }
  return groups;
}

/** Finds why a record of an instance was not exported; null: it was. */
function createLossLookup(gateways: readonly GatewayFacts[], instance: string) {
  const losses = gateways
    .flatMap((gateway) => gateway.losses)
    .filter((loss) => loss.instance === instance)
    .toSorted((a, b) => a.first - b.first);
  // Ranges of different reasons may overlap: a range is passed over only when all before it have ended, too.
  const ends: number[] = [];
  for (const { last } of losses) ends.push(Math.max(last, ends.at(-1) ?? 0));
  return (seq: number): FactsOfLoss['why'] | null => {
    let [low, high] = [0, losses.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ends[middle] ?? 0) < seq) low = middle + 1;
      else high = middle;
    }
    for (let index = low; (losses[index]?.first ?? Number.POSITIVE_INFINITY) <= seq; index++) {
      const loss = losses[index];
      if (loss !== undefined && loss.last >= seq) return loss.why;
    }
    return null;
  };
}

function toLacks(
  { name: gateway, recordsSince, lossesSince, unnumbered, losses, gaps, damagedBlocks }: GatewayFacts,
  { since, until }: { readonly since: string; readonly until: string },
): readonly Lack[] {
  const unknown = losses.filter((loss) => !loss.isKnown && loss.since < until && loss.until >= since);
  return [
    ...(recordsSince > since ? [{ what: 'records_not_kept', gateway, before: recordsSince } as const] : []),
    ...(lossesSince > since ? [{ what: 'losses_not_kept', gateway, before: lossesSince } as const] : []),
    ...gaps.map((gap) => ({ what: 'gap' as const, gateway, ...gap })),
    ...(damagedBlocks > 0 ? [{ what: 'damaged_blocks', gateway, blocks: damagedBlocks } as const] : []),
    ...(unnumbered > 0 ? [{ what: 'unnumbered', gateway, records: unnumbered } as const] : []),
    ...Map.groupBy(unknown, ({ instance, why }) => JSON.stringify([instance, why]))
      .values()
      .map((group) => toUnknown(gateway, group)),
  ];
}

function toUnknown(gateway: string, losses: readonly FactsOfLoss[]): Lack {
  const [first] = losses;
  if (first === undefined) throw new Error('a group has a member');
  const { instance, why } = first;
  return { what: 'whose_unknown', gateway, instance, why, numbers: losses.map(toSeqText) };
}
