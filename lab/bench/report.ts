import { toSpread } from '#testkit/programs/statistics.ts';
import type { Case, Figure } from './case.ts';
import type { Row } from './run-case.ts';

/** The results of one case as a Markdown table: medians, with minimum and maximum in brackets. */
export function toTable(benchCase: Case, rows: readonly Row[]): string {
  const [first] = benchCase.figures;
  const reference = rows.find(({ target }) => target === benchCase.reference);
  const head = [
    first?.title ?? '',
    `× ${benchCase.reference}`,
    ...benchCase.figures.slice(1).map(({ title }) => title),
  ];
  const lines = [
    `| | ${head.join(' | ')} |`,
    `|---|${'---:|'.repeat(head.length)}`,
    ...rows.map((row) => `| ${row.target} | ${toCells(benchCase, row, reference).join(' | ')} |`),
  ];
  return lines.join('\n');
}

function toCells(benchCase: Case, row: Row, reference: Row | undefined): readonly string[] {
  const [first, ...rest] = benchCase.figures;
  if (first === undefined) return [];
  if (row.samples.length === 0) return [row.failure ?? 'no samples', ...rest.map(() => ''), ''];
  return [
    toCell(row, first),
    toRatioCell(row, reference, first),
    ...rest.map((figure) => toCell(row, figure)),
  ];
}

function toCell(row: Row, { key, digits }: Figure): string {
  return format(
    row.samples.map((sample) => sample[key] ?? Number.NaN),
    digits,
  );
}

/** The ratio to the reference in the same round. */
function toRatioCell(row: Row, reference: Row | undefined, { key }: Figure): string {
  if (reference === undefined || reference === row) return '';
  const ratios = row.samples.map(
    (sample, round) => (sample[key] ?? Number.NaN) / (reference.samples[round]?.[key] ?? Number.NaN),
  );
  return format(ratios, 2);
}

function format(values: readonly number[], digits: number): string {
  const { median, min, max } = toSpread(values);
  if (Number.isNaN(median)) return '';
  const print = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return print(min) === print(max) ? print(median) : `${print(median)} (${print(min)} to ${print(max)})`;
}
