import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ReportedInstance, VerifyReport } from '#records';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const MAX_REPORT_BYTES = 64 * 1024 * 1024;

/** What `gateway verify` says of all records that the collector has received. */
export interface LedgerResult {
  readonly instances: number;
  /** Different records. */
  readonly records: number;
  /** Not there, and the gateway has said so. */
  readonly declaredLost: number;
  /** There more than once. */
  readonly doubled: number;
  /** What must not be, such as `missing 5-7 of …`. */
  readonly problems: readonly string[];
}

/** Records that the gateway declares lost or dropped, and doubled ones, are judged by the numbers of the run. */
const WRONG = [
  'missing',
  'declared_unencodable',
  'changed',
  'unexpected',
  'not_committed',
  'unproven',
] as const;

/** Runs `gateway verify`. */
export async function verifyRecords(file: string): Promise<LedgerResult> {
  const report = await runVerify(file);
  const problems = report.instances.flatMap(problemsOf);
  if (report.broken_lines > 0) problems.push(`${report.broken_lines} broken lines`);
  const sum = (toCount: (instance: ReportedInstance) => number) =>
    report.instances.reduce((total, instance) => total + toCount(instance), 0);
  return {
    instances: report.instances.length,
    records: sum(({ records }) => records),
    declaredLost: sum(
      ({ declared_lost: lost, declared_dropped: dropped, declared_rejected: rejected }) =>
        (lost?.count ?? 0) + (dropped?.count ?? 0) + (rejected?.count ?? 0),
    ),
    doubled: sum(({ doubled }) => doubled?.count ?? 0),
    problems,
  };
}

async function runVerify(file: string): Promise<VerifyReport> {
  const args = [MAIN, 'verify', '--json', file];
  // Its exit code is 1 for doubled records too, which are judged here.
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
    maxBuffer: MAX_REPORT_BYTES,
  }).catch((error: unknown) => error as { readonly stdout: string; readonly stderr: string });
  if (stdout === '') throw new Error(`gateway verify: ${stderr}`);
  return JSON.parse(stdout) as VerifyReport;
}

function problemsOf(instance: ReportedInstance): string[] {
  const of = `of instance ${instance.instance}`;
  const wrong = WRONG.flatMap((name) => {
    const { ranges } = instance[name] ?? {};
    return ranges === undefined ? [] : [`${name} ${ranges.slice(0, 5).join()} ${of}`];
  });
  const ledger = (['ledger_missing', 'ledger_changed', 'ledger_chain_broken'] as const).flatMap((name) =>
    instance[name] === undefined ? [] : [`${name} ${instance[name].slice(0, 5).join()} ${of}`],
  );
  const sums = instance.sums_differ === true ? [`sums_differ ${of}`] : [];
  const end = instance.ended ? [] : [`no end ${of}`];
  return [...wrong, ...ledger, ...sums, ...end];
}
