import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { isKindRight, type KindReport } from './judge-seeds.ts';
import type { VerdictCase, VerdictReport } from './roll-with-verdict.ts';

/** A rollout or an update without a verdict. */
export interface PlainReport {
  readonly title: string;
  readonly requests: number;
  readonly failed: number;
  /** Requests to a drained replica, and requests that the end of a replica cut; null: nothing was drained. */
  readonly misled: number | null;
  /** Null: records were not counted. */
  readonly missingRecords: number | null;
  readonly isRight: boolean;
}

/** What the program has found. */
export interface Results {
  readonly cases: readonly (readonly [VerdictCase, VerdictReport])[];
  readonly kinds: readonly KindReport[];
  readonly plain: readonly PlainReport[];
}

/** Whether the verdict is right and no request was lost but those of a failing engine. */
function isCaseRight([verdictCase, report]: Results['cases'][number]): boolean {
  return report.exitCodes.join() === verdictCase.exitCodes.join() && report.lost === report.lostByEngine;
}

/** What is not as promised. */
export function findBroken({ cases, kinds, plain }: Results): readonly string[] {
  return [
    ...cases.filter((each) => !isCaseRight(each)).map(([{ title }]) => title),
    ...kinds.filter((each) => !isKindRight(each)).map(({ title }) => title),
    ...plain.filter(({ isRight }) => !isRight).map(({ title }) => title),
  ];
}

/** The tables, in Markdown. */
export function toTables({ cases, kinds, plain }: Results): string {
  const spread = ([median, most]: readonly [number, number]) =>
    `${Math.round(median)}, ${Math.round(most).toLocaleString('en')}`;
  return [
    toTable(
      [
        'The engine after its restart',
        'Exit code',
        'The rollout says',
        'Seconds from the undrain',
        'Requests/s',
        'Requests lost',
      ],
      cases.map(([{ title }, report]) => [
        title,
        report.exitCodes.join(', then '),
        report.sentence.replaceAll('|', '\\|'),
        report.verdictAfterS?.toFixed(0) ?? '–',
        String(report.perSecond),
        toLost(report),
      ]),
    ),
    toTable(
      ['Simulated workloads', 'Number', 'bad', 'good', 'Seconds after the ramp', 'Requests'],
      kinds.map(({ title, count, bad, good, seconds, requests }) => [
        ...[title, String(count), String(bad), String(good), spread(seconds), spread(requests)],
      ]),
    ),
    ...(plain.length === 0
      ? []
      : [
          toTable(
            [
              'Without a verdict',
              'Requests',
              'Failed',
              'Sent to a drained replica, or cut',
              'Records missing',
            ],
            plain.map(({ title, requests, failed, misled, missingRecords }) => [
              ...[title, requests.toLocaleString('en'), String(failed)],
              ...[String(misled ?? '–'), String(missingRecords ?? '–')],
            ]),
          ),
        ]),
  ].join('\n\n');
}

function toLost({ requests, lost, lostByEngine }: VerdictReport): string {
  const count = `${lost} of ${requests.toLocaleString('en')}`;
  return lost > 0 && lost === lostByEngine ? `${count}, all by the engine` : count;
}

function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const toLine = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [toLine(head), toLine(widths.map((width) => '-'.repeat(width))), ...rows.map(toLine)].join('\n');
}

/** Writes the tables and their circumstances into docs/evidence/verdict.md. */
export function writeTables(results: Results): void {
  const { date, commit, machine } = readCircumstances();
  const text = [
    `Measured on ${date} at commit ${commit}, with Node ${process.version} on ${machine}, shared with other work.`,
    toTables(results)
      .replace(/ +(?=\|)/g, ' ')
      .replace(/-{4,}/g, '---'),
  ].join('\n\n');
  replaceBetween('docs/evidence/verdict.md', '<!-- measured -->', '<!-- end of what was measured -->', text);
}
