import { withoutControls } from '#otel/encode/shown-name.ts';

/**
 * Formats a table with columns two spaces apart, each as wide as its widest cell. Columns of numbers are aligned to the
 * right, as are the columns named in `rightAligned`, whose texts stand for numbers.
 */
export function toTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  rightAligned: readonly string[] = [],
): string {
  const lines = [head, ...rows].map((row) => row.map((cell) => toOneLine(String(cell))));
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const isNumeric = head.map(
    (name, column) =>
      rightAligned.includes(name) ||
      (rows.length > 0 && rows.every((row) => typeof row[column] === 'number')),
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

/** Makes a text from elsewhere safe for a terminal: one line without control characters, at most 300 characters. */
export function toOneLine(text: string): string {
  return withoutControls(text, ' ').slice(0, 300);
}
