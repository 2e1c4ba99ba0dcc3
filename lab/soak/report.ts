import { type Evidence, type Excuse, toExcuse } from './attribution.ts';
import { type Trend, toP99s, toTrend, toTrendOf, type Window } from './figures.ts';
import type { LedgerResult } from './ledger.ts';
import { MAX_OPEN, type Traffic } from './traffic.ts';
import type { Sample } from './world/gateways.ts';

/**
 * What the lower end of a trend's interval may grow by in the part of the run that is judged. V8 has not collected all
 * garbage when the run ends, and a short run still compiles. Open files and handles follow the requests that are open;
 * what stays of them is judged after the last request.
 */
const MAX_GROWTH = { rssMb: 64, heapMb: 16, externalMb: 16, fds: MAX_OPEN, resources: MAX_OPEN } as const;
/** The same for p99 to that of a direct request, as a share of what it was. */
const MAX_P99_GROWTH = 1;
/** Below this share of the asked rate the machine was too slow. */
const REACHED = 0.95;
const NAMES = {
  rssMb: 'memory (RSS, MB)',
  heapMb: 'heaps in use (MB)',
  externalMb: 'external memory (MB)',
  fds: 'open files',
  resources: 'handles of the main thread',
} as const;
const FIGURES = ['rssMb', 'heapMb', 'externalMb', 'fds', 'resources'] as const;

/** What a run has measured. */
export interface Run {
  readonly durationS: number;
  readonly perSecond: number;
  /** How often each fault ran to its end. */
  readonly faults: ReadonlyMap<string, number>;
  /** What went wrong apart from requests and records, one line each. */
  readonly problems: readonly string[];
  readonly gateways: readonly {
    readonly name: string;
    readonly workers: number;
    readonly samples: readonly Sample[];
    /** Before the first request, and after the last one. */
    readonly fdsAtStart: number;
    readonly fdsAtEnd: number;
  }[];
  readonly windows: readonly Window[];
  readonly traffic: Pick<Traffic, 'counts' | 'failures' | 'requestIds'>;
  readonly evidence: Evidence;
  /** The ids whose records the collector has. */
  readonly arrivedIds: ReadonlySet<string>;
  /** Records in calls that were cut before their answer. */
  readonly unansweredRecords: number;
  /** `dropped`, `rejected` and `lost` of all gateways. */
  readonly countedAsLost: number;
  readonly ledger: LedgerResult;
}

/** The figures of a run as text, and what was not as promised. */
export interface Report {
  readonly text: string;
  readonly problems: readonly string[];
}

/** Judges a run. */
export function toReport(run: Run): Report {
  const { durationS, perSecond, traffic, ledger } = run;
  const { counts } = traffic;
  const problems = [...run.problems, ...ledger.problems.map((problem) => `gateway verify: ${problem}`)];
  const failures = judgeFailures(run, problems);
  const missing = traffic.requestIds.filter((id) => !run.arrivedIds.has(id)).length;
  judgeRecords(run, missing, problems);
  const rows = run.gateways.flatMap(({ name, samples }) =>
    FIGURES.map((figure) => {
      const trend = toTrend(samples, figure);
      judgeGrowth(`${NAMES[figure]} of the ${name} gateway`, trend, MAX_GROWTH[figure], problems);
      return toRow(`${name}: ${NAMES[figure]}`, trend, MAX_GROWTH[figure], 1);
    }),
  );
  const p99s = toP99s(run.windows);
  if (p99s.length >= 4) {
    const trend = toTrendOf(p99s.map(({ hour, ratio }) => ({ hour, value: ratio })));
    judgeGrowth('p99 to that of a direct request', trend, MAX_P99_GROWTH * trend.early, problems);
    rows.push(toRow('p99 to that of a direct request', trend, MAX_P99_GROWTH * trend.early, 2));
  }
  const rate = counts.sent / durationS;
  const text = [
    `${minutes(durationS)} minutes, ${count(counts.sent)} requests, ${Math.round(rate)} per second${rate < REACHED * perSecond ? `: ${perSecond} were asked for, and the machine was too slow` : ''}.`,
    `${count(counts.succeeded)} ended as they should, among them ${count(counts.slowlyRead)} that were read slowly, ` +
      `${count(counts.limited)} that were over a limit, and ${count(counts.found)} for kept responses (${count(counts.gone)} more were gone with their replica); ` +
      `${count(counts.aborted)} were left by their clients; ${count(counts.failed)} failed${failures}.`,
    `${count(traffic.requestIds.length)} requests must have a record: ${count(traffic.requestIds.length - missing)} arrived, ${count(missing)} did not, ${count(run.countedAsLost)} are counted as lost.`,
    `\`gateway verify\`: ${count(ledger.records)} records of ${ledger.instances} instances, ${count(ledger.declaredLost)} declared lost, ${count(ledger.doubled)} doubled ` +
      `(${count(run.unansweredRecords)} were in calls that were cut before their answer), ${ledger.problems.length === 0 ? 'nothing missing or changed' : `${ledger.problems.length} problems`}.`,
    '',
    '| fault | times |',
    '|---|---:|',
    ...[...run.faults].map(([name, times]) => `| ${name} | ${times} |`),
    '',
    '| figure | second quarter | last quarter | growth per hour | growth from the second quarter on | limit |',
    '|---|---:|---:|---:|---:|---:|',
    ...rows,
    '',
    ...(p99s.length === 0 ? [] : [p99Line(p99s)]),
    ...run.gateways.map(
      ({ name, workers, fdsAtStart, fdsAtEnd }) =>
        `Open files of the ${name} gateway (${workers === 1 ? 'one worker' : `${workers} workers`}): ${fdsAtStart} before the first request, ${fdsAtEnd} after the last.`,
    ),
  ].join('\n');
  return { text, problems };
}

function judgeFailures({ traffic, evidence }: Run, problems: string[]): string {
  const excused = new Map<Excuse, number>();
  const needless = new Map<string, number>();
  for (const failed of traffic.failures) {
    const excuse = toExcuse(failed, evidence);
    if (excuse !== null) excused.set(excuse, (excused.get(excuse) ?? 0) + 1);
    else {
      const what = `${failed.kind}: ${failed.reason}`;
      needless.set(what, (needless.get(what) ?? 0) + 1);
    }
  }
  for (const [what, times] of needless) problems.push(`${times} requests failed without need (${what})`);
  const parts = [...excused].map(([excuse, times]) => `${times} because ${excuse}`);
  const others = traffic.failures.length - [...excused.values()].reduce((sum, times) => sum + times, 0);
  if (others > 0) parts.push(`${others} without need`);
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function judgeRecords(
  { countedAsLost, ledger, unansweredRecords }: Run,
  missing: number,
  problems: string[],
): void {
  if (missing > countedAsLost) {
    problems.push(`${missing} records are missing, ${countedAsLost} are counted as lost`);
  }
  if (ledger.declaredLost !== countedAsLost) {
    problems.push(`${ledger.declaredLost} records are declared lost, ${countedAsLost} are counted as lost`);
  }
  if (ledger.doubled > unansweredRecords) {
    problems.push(
      `${ledger.doubled} records came twice, ${unansweredRecords} were in calls without an answer`,
    );
  }
}

function judgeGrowth(name: string, { growth, early, late }: Trend, max: number, problems: string[]): void {
  if (growth.low > max) problems.push(`${name} grew from ${early.toFixed(1)} to ${late.toFixed(1)}`);
}

function toRow(name: string, { early, late, perHour, growth }: Trend, max: number, digits: number): string {
  const interval = ({ low, estimate, high }: Trend['growth']) =>
    `${signed(estimate, digits)} (${signed(low, digits)} to ${signed(high, digits)})`;
  const cells = [early.toFixed(digits), late.toFixed(digits), interval(perHour), interval(growth)];
  return `| ${name} | ${cells.join(' | ')} | ${max.toFixed(max % 1 === 0 ? 0 : digits)} |`;
}

function p99Line(p99s: ReturnType<typeof toP99s>): string {
  const range = (key: 'gatewayMs' | 'directMs') => {
    const values = p99s.map((each) => each[key]);
    return `${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)} ms`;
  };
  return `p99 of a chat through the gateways in ${p99s.length} parts of the run: ${range('gatewayMs')}; of the same request sent directly to a replica: ${range('directMs')}.`;
}

const signed = (value: number, digits: number) => `${value >= 0 ? '+' : ''}${value.toFixed(digits)}`;
const count = (value: number) => value.toLocaleString('en');
const minutes = (seconds: number) => (seconds / 60).toFixed(1);
