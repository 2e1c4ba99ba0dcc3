import { type SeqRange, SpanReader } from '../../../../src/records/verify/exported-span.ts';
import type { InstanceVerdict } from '../../../../src/records/verify/instance-check.ts';
import { Verification } from '../../../../src/records/verify/verify.ts';
import type { Chronicle } from './chronicle.ts';
import type { CollectedSpan } from './facts.ts';
import type { Losses } from './losses.ts';

/**
 * Checks that the records of each instance are numbered 1, 2, 3 and so on: none has the number of another, and no more
 * numbers are missing than their gateway says. Returns what is wrong.
 */
export function checkNumbers(chronicle: Chronicle, losses: readonly Losses[]): string | null {
  const gaps = losses.map(() => 0);
  for (const [instance, records] of byInstance([
    ...chronicle.refused.values(),
    ...chronicle.collected.values(),
  ])) {
    const spans = new Map(records.map((record) => [record.spanId, seqOf(record)]));
    const seqs = new Set(spans.values());
    const last = Math.max(...seqs);
    if (![...seqs].every((seq) => Number.isInteger(seq) && seq >= 1)) return `${instance} has no numbers`;
    if (seqs.size < spans.size) return `${instance} has given a number twice: ${[...spans.values()]}`;
    const gateway = gatewayOf(chronicle, instance);
    if (gateway !== null) gaps[gateway] = (gaps[gateway] ?? 0) + last - seqs.size;
  }
  for (const [gateway, { counted, wasKilled }] of losses.entries()) {
    const missing = gaps[gateway] ?? 0;
    if (!wasKilled && missing > counted)
      return `gateway ${gateway}: ${missing} numbers are missing, and it says so of ${counted}`;
  }
  return null;
}

/** Checks the ledgers of all instances as `gateway verify` does. Returns what is wrong. */
export function checkLedgers(chronicle: Chronicle, losses: readonly Losses[]): string | null {
  const verification = new Verification();
  for (const { json } of [...chronicle.collected.values(), ...chronicle.ledgers.values()]) {
    const line = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [json] }] }] });
    verification.addLine(Buffer.from(line));
  }
  if (verification.brokenLines > 0) return `${verification.brokenLines} spans cannot be verified`;
  const refused = byInstance(chronicle.refused.values());
  const refusedLedgers = byInstance(chronicle.refusedLedgers.values());
  let declaredLost = 0;
  for (const [instance, check] of verification.checks) {
    const gateway = gatewayOf(chronicle, instance);
    const own = gateway === null ? losses : losses.slice(gateway, gateway + 1);
    const verdict = check.verdict({ isPart: false });
    declaredLost += verdict.finding.declared.lost.count;
    const ledgers = refusedLedgers.get(instance) ?? [];
    const problem = checkVerdict(verdict, {
      refused: new Set((refused.get(instance) ?? []).map(seqOf)),
      refusedLedgers: new Set(ledgers.map((span) => Number(span.attributes['gateway.ledger.number']))),
      declared: new Set(ledgers.flatMap(toDeclared)),
      mayLose: own.some(isExcused),
    });
    if (problem !== null) return `the ledger of ${instance}: ${problem}`;
  }
  const lost = losses.reduce((sum, each) => sum + each.lost, 0);
  const isWhole = chronicle.refusedLedgers.size === 0 && !losses.some(isExcused);
  return isWhole && declaredLost !== lost
    ? `the ledgers declare ${declaredLost} records as lost, the logs ${lost}`
    : null;
}

/** What may be missing. */
interface Excuses {
  /** The numbers of records that the collector has refused. */
  readonly refused: ReadonlySet<number>;
  readonly refusedLedgers: ReadonlySet<number>;
  /** The numbers of which a refused ledger span says that their records will not come. */
  readonly declared: ReadonlySet<number>;
  /** Records and ledger spans may be missing without a word. */
  readonly mayLose: boolean;
}

/** Null: the ledger says what the world has seen. */
function checkVerdict(
  { finding, state }: InstanceVerdict,
  { refused, refusedLedgers, declared: declaredInVain, mayLose }: Excuses,
): string | null {
  const { missing, declared, missingLedgers } = finding;
  const never = [
    ['doubled', finding.doubled.count],
    ['changed', finding.changed.count],
    ['unexpected', finding.unexpected.count],
    ['declared unencodable', declared.unencodable.count],
    ['changed ledger spans', finding.changedLedgers.length],
    ['broken chains', finding.brokenChain.length],
    ['wrong sums', finding.sumsDiffer ? 1 : 0],
    ['unproven without a missing ledger span', missingLedgers.length === 0 ? finding.unproven.count : 0],
  ] as const;
  for (const [what, count] of never) if (count > 0) return `${what}: ${count}`;
  const notRefused = numbersIn(declared.rejected.ranges).filter((seq) => !refused.has(seq));
  if (notRefused.length > 0) return `it declares as rejected what nobody has refused: ${notRefused}`;
  if (mayLose) return null;
  const unexplained = numbersIn(missing.ranges).filter(
    (seq) => !refused.has(seq) && !declaredInVain.has(seq),
  );
  if (unexplained.length > 0) return `records are missing without a word: ${unexplained}`;
  const lostLedgers = numbersIn(missingLedgers).filter((number) => !refusedLedgers.has(number));
  if (lostLedgers.length > 0) return `ledger spans are missing: ${lostLedgers}`;
  const isWhole = state === 'complete' || state === 'incomplete';
  if (!isWhole && refusedLedgers.size === 0) return `it is ${state} at the end`;
  return null;
}

/** Killed processes and broken disks lose what waits in memory. */
function isExcused({ wasKilled, hadDiskFaults, undelivered, cut }: Losses): boolean {
  return wasKilled || hadDiskFaults || undelivered > 0 || cut > 0;
}

/** The gateway of an instance or of one of its workers; null if it has left no record. */
function gatewayOf({ collected, refused, views }: Chronicle, instance: string): number | null {
  const [process] = instance.split('.');
  for (const { attributes } of [...collected.values(), ...refused.values()]) {
    if (String(attributes['gateway.instance']).split('.')[0] !== process) continue;
    const view = views.find(({ plan }) => plan.id === attributes['gateway.tenant']);
    if (view !== undefined) return view.gateway;
  }
  return null;
}

function byInstance(spans: Iterable<CollectedSpan>): ReadonlyMap<string, readonly CollectedSpan[]> {
  return Map.groupBy(spans, ({ attributes }) => String(attributes['gateway.instance']));
}

function seqOf({ attributes }: CollectedSpan): number {
  return Number(attributes['gateway.seq']);
}

/** The numbers of which a ledger span says that their records were dropped, lost or not encoded. */
function toDeclared({ json }: CollectedSpan): readonly number[] {
  const span = new SpanReader().readSpan(json);
  return span?.kind === 'ledger' ? numbersIn([...span.dropped, ...span.lost, ...span.unencodable]) : [];
}

function numbersIn(ranges: readonly SeqRange[]): readonly number[] {
  return ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, at) => first + at));
}
