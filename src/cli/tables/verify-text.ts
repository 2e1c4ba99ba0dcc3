import { toOneLine } from '#cli/terminal';
import type { ReportedInstance, ReportedRanges, VerifyReport } from '#records';

/** Ranges beyond these are only counted: --json lists more. */
const SHOWN_RANGES = 20;

const STATES: Readonly<Record<ReportedInstance['state'], string>> = {
  complete: 'complete',
  open: 'complete so far; the instance runs, was killed, or its end is not in these files',
  uncommitted: 'NOT PROVEN: no gap, but there is no ledger span (export.ledger)',
  incomplete: 'NOT COMPLETE',
};

const LINES: readonly (readonly [keyof ReportedInstance, string])[] = [
  ['missing', 'missing'],
  ['declared_dropped', 'missing, and declared by the gateway: dropped, the queue was full'],
  ['declared_lost', 'missing, and declared by the gateway: lost with a worker'],
  ['declared_unencodable', 'missing, and declared by the gateway: could not be encoded'],
  ['declared_rejected', 'missing, and declared by the gateway: rejected by the collector'],
  ['doubled', 'doubled'],
  ['changed', 'changed'],
  ['unexpected', 'there, but the gateway has declared that they are not'],
  ['unproven', 'there, but their ledger span is not'],
  ['not_committed', 'not committed: after the last ledger span'],
  ['ledger_missing', 'ledger spans missing'],
  ['ledger_changed', 'ledger spans changed'],
  ['ledger_chain_broken', 'ledger spans that do not follow the one before'],
];

/** The report for people. */
export function toReportText(report: VerifyReport): string {
  const { instances, sums, broken_lines, unidentified = 0, proven } = report;
  const lines = instances.flatMap(toLines);
  for (const { instance, first_seq, last_seq, what, expected, found } of sums?.differences ?? []) {
    const place = first_seq === null && last_seq === null ? '' : `, seq ${first_seq ?? 1}-${last_seq ?? ''}`;
    lines.push(`sums of ${toOneLine(instance)}${place}: ${toDifference(what, expected, found)}`);
  }
  if (broken_lines > 0) lines.push(`lines that cannot be read: ${broken_lines}`);
  if (unidentified > 0) lines.push(`records without an instance or a number: ${unidentified}`);
  lines.push(proven ? 'Proven.' : 'Not proven.');
  return `${lines.join('\n')}\n`;
}

function toLines(instance: ReportedInstance): readonly string[] {
  const toCount = (name: keyof ReportedInstance) =>
    `${name.replace('_', ' ')} ${Number(instance[name]).toLocaleString('en')}`;
  const lines = [
    `${toOneLine(instance.instance)}: ${STATES[instance.state]}`,
    `  ${(['records', 'prompt_tokens', 'completion_tokens', 'cached_tokens'] as const).map(toCount).join(', ')}`,
    `  ${toCount('ledger_spans')}, ${toCount('committed_to')}${instance.ended ? ', ended' : ''}`,
  ];
  if (instance.chain !== null) lines.push(`  chain ${toOneLine(instance.chain)}`);
  for (const [member, title] of LINES) {
    const value = instance[member];
    if (value === undefined || value === null || typeof value !== 'object') continue;
    lines.push(`  ${title}: ${'ranges' in value ? toRanges(value) : value.join(', ')}`);
  }
  if (instance.sums_differ === true) lines.push('  the sums of the ledger are not those of the records');
  return lines;
}

function toRanges({ count, ranges, more }: ReportedRanges): string {
  const shown = ranges.slice(0, SHOWN_RANGES).join(', ');
  const rest = ranges.length > SHOWN_RANGES || more === true ? ', …' : '';
  return `${shown}${rest} (${count})`;
}

function toDifference(what: string, expected: number | null, found: number | null): string {
  if (what === 'ledger') return 'no ledger spans cover exactly these records';
  if (what === 'row') return `the backend has none, the ledger has ${expected} records`;
  return `${what} ${found}, the ledger says ${expected}`;
}
