import { type Cell, type Column, type Paint, toOneLine, toTable } from '#cli/terminal';
import type { Statement, StatementReport } from '#statement';
import type { LocalTime } from '../history/local-time.ts';
import { toCostText } from './cost-text.ts';
import { toCsv, toCsvName } from './csv.ts';

type Sums = Statement['total'];
type Lack = Statement['lacks'][number];

/** Ranges of numbers beyond these are only counted. */
const SHOWN_RANGES = 20;

const tenths = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

interface Figure extends Column {
  readonly toText: (sums: Sums) => Cell;
}

const FIGURES: readonly Figure[] = [
  { head: 'REQUESTS', toText: ({ requests }) => requests },
  { head: 'IN', toText: ({ prompt_tokens }) => prompt_tokens },
  { head: 'CACHED', rank: 2, toText: ({ cached_tokens }) => cached_tokens },
  { head: 'OUT', toText: ({ completion_tokens }) => completion_tokens },
  { head: 'REASONING', rank: 3, toText: ({ reasoning_tokens }) => reasoning_tokens },
  { head: 'GPU', rank: 1, toText: ({ gpu_seconds }) => `${tenths.format(Number(gpu_seconds))} s` },
  { head: 'COST', toText: toCosts },
];

/** A statement for people: by day and model, with its span above and the total below. */
export function toStatementTable(
  { tenant, month, since, until, rows, total, time_zone }: Statement,
  time: LocalTime,
  look: { readonly paint: Paint; readonly width: number | null },
): string {
  const span = `${time.toRfc3339(since)} to ${time.toRfc3339(until)} (${time_zone})`;
  const figures = FIGURES.map((figure) => ({ ...figure, isNumber: true }));
  const columns: Column[] = [{ head: 'DAY' }, { head: 'MODEL', least: 10 }, ...figures];
  const toCells = (sums: Sums, names: readonly string[]): Cell[] => [
    ...names,
    ...FIGURES.map(({ toText }) => toText(sums)),
  ];
  const body = [
    ...rows.map((row) => toCells(row, [row.day, row.model ?? '-'])),
    toCells(total, ['total', '']),
  ];
  return `${look.paint(`${toOneLine(tenant)}, ${month}: ${span}`, 'dim')}\n${toTable(columns, body, look)}`;
}

/** The rows of a statement as comma-separated values (RFC 4180), with a line of heads. A cost has a column for each currency. */
export function toStatementCsv({ rows, total }: Statement): string {
  const { costs: ofAll, ...figures } = total;
  const currencies = Object.keys(ofAll).sort();
  const lines = rows.map(({ day, model, costs, ...sums }) => [
    ...[day, toCsvName(model ?? ''), ...Object.values(sums).map(String)],
    ...currencies.map((currency) => costs[currency] ?? '0'),
  ]);
  const costs = currencies.map((currency) => `cost_${currency}`);
  return toCsv([['day', 'model', ...Object.keys(figures), ...costs], ...lines]);
}

/** Says what is missing in a statement, and what of it was not exported. */
export function toLackTexts({ lacks, not_exported }: Statement, time: LocalTime): readonly string[] {
  const texts = lacks.map((lack) => toLackText(lack, time));
  const { records, total } = not_exported;
  if (total.requests === 0) return texts;
  const others = records.map(({ why, instance, numbers }) => `${why}: ${instance} ${toList(numbers)}`);
  const why = `because their records were not exported (${others.join('; ')})`;
  return [...texts, `requests in no sum: ${total.requests.toLocaleString('en')}, ${why}`];
}

function toLackText(lack: Lack, time: Pick<LocalTime, 'toRfc3339'>): string {
  switch (lack.what) {
    case 'month_not_over':
      return 'the month is not over: requests that come, or end, later are missing';
    case 'requests_running':
      return `${lack.gateway}: requests of all tenants that have arrived since ${time.toRfc3339(lack.since)} still run, and are missing`;
    case 'records_not_kept':
      return `${lack.gateway}: records before ${time.toRfc3339(lack.before)} are not kept`;
    case 'losses_not_kept':
      return `${lack.gateway}: which records before ${time.toRfc3339(lack.before)} were not exported is not known`;
    case 'gap': {
      const span = `between ${time.toRfc3339(lack.since)} and ${time.toRfc3339(lack.until)}`;
      const count = lack.records?.toLocaleString('en') ?? 'some';
      return `${lack.gateway}: ${count} records of all tenants ${span} may be missing (${lack.reason})`;
    }
    case 'damaged_blocks':
      return `${lack.gateway}: ${lack.blocks} blocks of records are damaged: theirs are missing`;
    case 'unnumbered':
      return `${lack.gateway}: ${lack.records} records without a number are in no sum`;
    case 'whose_unknown':
      return `${lack.gateway}: records of whom nobody knows were ${lack.why}: ${lack.instance} ${toList(lack.numbers)}`;
  }
}

/** What `gateway verify --statement` has found, for people. */
export function toStatementReportText(report: StatementReport): string {
  const { tenant, month, time_zone, requests, costs, proven_records, instances, sums_differ } = report;
  const cost = toCosts({ costs });
  const lines = [
    `${toOneLine(tenant)}, ${month} (${toOneLine(time_zone)}): ${requests.toLocaleString('en')} requests${cost === '-' ? '' : `, ${cost}`}`,
    `  ${SIGNATURES[report.signature]}${toKeyText(report)}`,
    `  records proven ${proven_records.toLocaleString('en')} of ${requests.toLocaleString('en')}`,
  ];
  for (const finding of instances) {
    for (const [name, title] of FINDINGS) {
      const found = finding[name];
      if (found === undefined) continue;
      lines.push(`  ${title}: ${toOneLine(finding.instance)} ${toList(found.numbers)} (${found.count})`);
    }
  }
  for (const { day, model, what, stated, found } of sums_differ) {
    const place = day === null ? 'total' : `${day} ${toOneLine(model ?? '-')}`;
    lines.push(`  sums differ: ${place}: ${what} ${stated ?? 'none'}, the records give ${found ?? 'none'}`);
  }
  if (report.broken_lines > 0) lines.push(`  lines that cannot be read: ${report.broken_lines}`);
  if (report.unidentified > 0)
    lines.push(`  records without an instance or a number: ${report.unidentified}`);
  lines.push(
    ...report.lacks.map((lack) => `  the statement itself says: ${toOneLine(toLackText(lack, AS_STATED))}`),
  );
  lines.push(report.proven ? 'Proven.' : 'Not proven.');
  return `${lines.join('\n')}\n`;
}

/** Times as the statement has them. */
const AS_STATED: Pick<LocalTime, 'toRfc3339'> = { toRfc3339: String };

const SIGNATURES: Readonly<Record<StatementReport['signature'], string>> = {
  valid: 'signed',
  wrong: 'THE SIGNATURE IS WRONG: the statement was changed after it was signed',
  absent: 'NOT SIGNED',
};

function toKeyText({ public_key, key }: StatementReport): string {
  if (public_key === null) return '';
  const name = ` with the key ${toOneLine(public_key)}`;
  if (key === 'as_given') return name;
  return `${name}${key === 'another' ? ', WHICH IS NOT THE GIVEN ONE' : ': compare it with the one that the seller has published'}`;
}

const FINDINGS = [
  ['missing', 'missing'],
  ['doubled', 'doubled'],
  ['changed', 'changed'],
  ['of_another_tenant', 'of somebody else'],
  ['outside_month', 'not of this month'],
  ['unlisted', 'of this tenant and month, but not in the statement'],
  ['unexpected', 'there, but the statement says that they were not exported'],
] as const;

function toList(numbers: readonly string[]): string {
  const rest = numbers.length > SHOWN_RANGES ? ', …' : '';
  return `${numbers.slice(0, SHOWN_RANGES).join(', ')}${rest}`;
}

function toCosts({ costs }: Pick<Sums, 'costs'>): string {
  const texts = Object.entries(costs).map(([currency, amount]) => toCostText(Number(amount), currency));
  return texts.length === 0 ? '-' : texts.join(' + ');
}
