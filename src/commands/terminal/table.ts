import { withoutControls } from '#otel/encode/shown-name.ts';
import type { Paint, Style } from './paint.ts';

/** A cell of a table: its text, and how it is emphasized. */
export type Cell = string | number | { readonly text: string; readonly style: Style | null };

/** How a table looks. */
export interface TableLook {
  readonly paint: Paint;
  /** The heads of the columns whose texts stand for numbers. */
  readonly rightAligned?: readonly string[];
}

/**
 * Formats a table with columns two spaces apart, each as wide as its widest cell. Columns of numbers are aligned to the
 * right.
 */
export function toTable(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  { paint, rightAligned = [] }: TableLook,
): string {
  const lines = [head, ...rows].map((row) => row.map((cell) => toOneLine(textOf(cell))));
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const isNumeric = head.map(
    (name, column) =>
      rightAligned.includes(name) ||
      (rows.length > 0 && rows.every((row) => typeof row[column] === 'number')),
  );
  return lines
    .map((line, index) => {
      const cells = line.map((text, column) => {
        const spaces = ' '.repeat((widths[column] ?? 0) - text.length);
        const shown = paint(text, index === 0 ? 'bold' : styleOf(rows[index - 1]?.[column]));
        const isLast = column === line.length - 1;
        if (isNumeric[column]) return spaces + shown;
        return isLast ? shown : shown + spaces;
      });
      return `${cells.join('  ').trimEnd()}\n`;
    })
    .join('');
}

function textOf(cell: Cell): string {
  return typeof cell === 'object' ? cell.text : String(cell);
}

function styleOf(cell: Cell | undefined): Style | null {
  return typeof cell === 'object' ? cell.style : null;
}

/** Makes a text from elsewhere safe for a terminal: one line without control characters, at most 300 characters. */
export function toOneLine(text: string): string {
  return withoutControls(text, ' ').slice(0, 300);
}
