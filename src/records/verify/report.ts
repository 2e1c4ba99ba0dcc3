import type { SumsDifference } from './backend-sums.ts';
import type { RangeList } from './finding.ts';
import type { InstanceVerdict } from './instance-check.ts';
import type { Verification } from './verify.ts';

/** Numbers in the report: each range is `5` or `7-9`. */
export interface ReportedRanges {
  readonly count: number;
  readonly ranges: readonly string[];
  /** True if there are more ranges than are listed. */
  readonly more?: true;
}

/** What `gateway verify --json` prints about one instance. A member about something wrong is absent if nothing is. */
export interface ReportedInstance {
  readonly instance: string;
  readonly state: InstanceVerdict['state'];
  /** Different records that are there. */
  readonly records: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly ledger_spans: number;
  /** The last number that ledger spans cover. */
  readonly committed_to: number;
  /** Whether the last ledger span says that the instance has ended. */
  readonly ended: boolean;
  /** The chain of the last ledger span. */
  readonly chain: string | null;
  readonly missing?: ReportedRanges;
  readonly declared_dropped?: ReportedRanges;
  readonly declared_lost?: ReportedRanges;
  readonly declared_unencodable?: ReportedRanges;
  readonly declared_rejected?: ReportedRanges;
  readonly doubled?: ReportedRanges;
  readonly changed?: ReportedRanges;
  readonly unexpected?: ReportedRanges;
  readonly unproven?: ReportedRanges;
  readonly not_committed?: ReportedRanges;
  /** Numbers of ledger spans. */
  readonly ledger_missing?: readonly string[];
  readonly ledger_changed?: readonly number[];
  readonly ledger_chain_broken?: readonly number[];
  readonly sums_differ?: true;
}

/** What `gateway verify --json` prints. */
export interface VerifyReport {
  /** Exit code 0. */
  readonly proven: boolean;
  /** Lines that are no records, such as half a line at the end of a file. Nothing is proven with one. */
  readonly broken_lines: number;
  /** Records and ledger spans without an instance or a number; absent if there is none. Nothing is proven with one. */
  readonly unidentified?: number;
  readonly instances: readonly ReportedInstance[];
  /** Only with --sums. */
  readonly sums?: { readonly differences: readonly SumsDifference[] };
}

/**
 * Makes the report. `isPart`: the files are a part of what was recorded. `differences`: those of sums; the records are
 * then the backend's, and only the ledger spans of the files count. Null: no sums were given.
 */
export function toReport(
  { checks, brokenLines, unidentified }: Verification,
  {
    isPart,
    differences,
  }: { readonly isPart: boolean; readonly differences: readonly SumsDifference[] | null },
): VerifyReport {
  const hasRecords = [...checks.values()].some(({ records }) => records > 0);
  const onlySums = differences !== null && !hasRecords;
  const verdicts = [...checks.values()].map((check) => check.verdict({ isPart }));
  const instances = verdicts.map((verdict) => toReported(verdict, onlySums));
  const areProven = verdicts.every((verdict) => isProven(verdict, { isPart, onlySums }));
  return {
    proven:
      instances.length > 0 &&
      unidentified === 0 &&
      brokenLines === 0 &&
      areProven &&
      (differences ?? []).length === 0,
    broken_lines: brokenLines,
    ...(unidentified === 0 ? {} : { unidentified }),
    instances,
    ...(differences === null ? {} : { sums: { differences } }),
  };
}

function isProven(
  { state, finding, isFinal }: InstanceVerdict,
  { isPart, onlySums }: { readonly isPart: boolean; readonly onlySums: boolean },
): boolean {
  if (onlySums) {
    const { missingLedgers, changedLedgers, brokenChain } = finding;
    const isWhole = [missingLedgers, changedLedgers, brokenChain].every(({ length }) => length === 0);
    return isWhole && (isPart || isFinal);
  }
  return state === 'complete' || (isPart && state === 'open');
}

function toReported(verdict: InstanceVerdict, onlySums: boolean): ReportedInstance {
  const { finding, tokens } = verdict;
  const { declared, missingLedgers, changedLedgers, brokenChain } = finding;
  return {
    instance: verdict.instance,
    state: verdict.state,
    records: verdict.records,
    prompt_tokens: tokens.prompt,
    completion_tokens: tokens.completion,
    cached_tokens: tokens.cached,
    ledger_spans: verdict.ledgerSpans,
    committed_to: verdict.committedTo,
    ended: verdict.isFinal,
    chain: verdict.chain,
    ...(onlySums
      ? {}
      : {
          ...ranges('missing', finding.missing),
          ...ranges('declared_dropped', declared.dropped),
          ...ranges('declared_lost', declared.lost),
          ...ranges('declared_unencodable', declared.unencodable),
          ...ranges('declared_rejected', declared.rejected),
          ...ranges('doubled', finding.doubled),
          ...ranges('changed', finding.changed),
          ...ranges('unexpected', finding.unexpected),
          ...ranges('unproven', finding.unproven),
          ...ranges('not_committed', finding.notCommitted),
        }),
    ...(missingLedgers.length === 0 ? {} : { ledger_missing: missingLedgers.map(toText) }),
    ...(changedLedgers.length === 0 ? {} : { ledger_changed: changedLedgers }),
    ...(brokenChain.length === 0 ? {} : { ledger_chain_broken: brokenChain }),
    ...(finding.sumsDiffer ? { sums_differ: true } : {}),
  };
}

function ranges<Name extends string>(name: Name, list: RangeList): { readonly [K in Name]?: ReportedRanges } {
  if (list.count === 0) return {};
  const reported: ReportedRanges = {
    count: list.count,
    ranges: list.ranges.map(toText),
    ...(list.hasMore ? { more: true } : {}),
  };
  // The type of a computed key is wider than its name.
  return { [name]: reported } as { readonly [K in Name]?: ReportedRanges };
}

function toText({ first, last }: { readonly first: number; readonly last: number }): string {
  return first === last ? `${first}` : `${first}-${last}`;
}
