import { toOneLine } from '../admin/client.ts';

/**
 * Columns as wide as their widest cell, two spaces apart; numbers to the right, and those texts that stand for numbers:
 * the columns of the head named in `figures`.
 */
export function toTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  figures: readonly string[] = [],
): string {
  const lines = [head, ...rows].map((row) => row.map((cell) => toOneLine(String(cell))));
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const isNumeric = head.map(
    (name, column) =>
      figures.includes(name) || (rows.length > 0 && rows.every((row) => typeof row[column] === 'number')),
  );
  return lines
    .map((line) => {
      const cells = line.map((cell, column) => {
        const width = widths[column] ?? 0;
        return isNumeric[column] ? cell.padStart(width) : cell.padEnd(width);
      });
      return `${cells.join('  ').trimEnd()}\n`;
    })
    .join('');
}
