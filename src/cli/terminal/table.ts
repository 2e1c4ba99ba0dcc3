import type { TextSink } from '#cli/command';
import { withoutControls } from '#otel/base';
import type { Paint, Style } from './paint.ts';
import { sizeOf } from './terminal-size.ts';
import { type Cut, shorten, widthOf } from './text-width.ts';

/** A cell of a table: its text, and how it is emphasized. A number gets thousands separators. */
export type Cell = string | number | { readonly text: string; readonly style: Style | null };

/** A column of a table. */
export interface Column {
  readonly head: string;
  /** Whether its texts stand for numbers, which are aligned to the right. Columns whose cells are all numbers are, too. */
  readonly isNumber?: boolean;
  /** The least width to which its texts are shortened on a narrow terminal. Without it they are never shortened. */
  readonly least?: number;
  /** Where its texts are shortened. A name loses its middle. */
  readonly cut?: Cut;
  /** On a narrow terminal, columns of the largest rank are left out first. Without a rank it always stays. */
  readonly rank?: number;
}

/** How a table looks. */
interface TableLook {
  readonly paint: Paint;
  /** How many columns of a terminal it must fit into. Null: it shows everything, however wide that is. */
  readonly width?: number | null;
}

/** The width that a table has on this output: that of a terminal. Elsewhere a program may read it: it shows everything. */
export function tableWidthOf(output: TextSink): number | null {
  return output.isTTY === true ? sizeOf(output).columns : null;
}

/** Formats a table with columns two spaces apart, each as wide as its widest cell if there is room. */
export function toTable(
  heads: readonly (string | Column)[],
  rows: readonly (readonly Cell[])[],
  { paint, width = null }: TableLook,
): string {
  const columns = heads.map((head, column): Column => {
    const isNumber = rows.length > 0 && rows.every((row) => typeof row[column] === 'number');
    return { isNumber, ...(typeof head === 'string' ? { head } : head) };
  });
  const lines = [
    columns.map(({ head }) => head),
    ...rows.map((row) => row.map((cell) => toCellText(textOf(cell)))),
  ];
  const widths = fitTable(columns, widestOf(columns, lines), width);
  return lines
    .map((line, index) => {
      const paintCell = (text: string, column: number) =>
        paint(text, index === 0 ? 'bold' : styleOf(rows[index - 1]?.[column]));
      return `${toTableLine(columns, widths, line, paintCell)}\n`;
    })
    .join('');
}

/** A row of a table that grows. All of it is emphasized. */
interface GrowingRow {
  readonly texts: readonly string[];
  readonly style: Style | null;
}

/**
 * Creates a table that is written piece by piece: the function formats the next rows of it in this width; null: as wide
 * as they need. Columns are aligned within each call; a column needs more room, and never less, as longer texts come.
 * `usual`: the width of a column as long as no longer text has come.
 * A line of heads is above the first row, and above the next one when other columns are left out.
 */
export function createGrowingTable(
  columns: readonly (Column & { readonly usual: number })[],
  paint: Paint,
): (rows: readonly GrowingRow[], width: number | null) => string {
  const heads = columns.map(({ head }) => head);
  let widest = columns.map(({ usual, head }) => Math.max(usual, widthOf(head)));
  let columnsBefore = '';
  return (rows, width) => {
    if (rows.length === 0) return '';
    const lines = rows.map(({ texts }) => texts.map(toCellText));
    const widestNow = widestOf(columns, lines);
    widest = widest.map((before, index) => Math.max(before, widestNow[index] ?? 0));
    const widths = fitTable(columns, widest, width);
    const toLine = (texts: readonly string[]) => toTableLine(columns, widths, texts);
    const shown = lines.map((line, index) => paint(toLine(line), rows[index]?.style ?? null));
    const columnsNow = heads.filter((_, index) => widths[index] !== null).join();
    if (columnsNow !== columnsBefore) shown.unshift(paint(toLine(heads), 'bold'));
    columnsBefore = columnsNow;
    return `${shown.join('\n')}\n`;
  };
}

/** The width of the widest text in each column. */
function widestOf(columns: readonly Column[], lines: readonly (readonly string[])[]): readonly number[] {
  return columns.map((_, column) =>
    lines.reduce((most, line) => Math.max(most, widthOf(line[column] ?? '')), 0),
  );
}

/** The width of each column in a table of `width`; null for a column that is left out. */
function fitTable(
  columns: readonly Column[],
  widest: readonly number[],
  width: number | null,
): readonly (number | null)[] {
  if (width === null) return widest;
  const needs = columns.map(({ least = null, rank = 0 }, index) => ({
    natural: widest[index] ?? 0,
    least,
    rank,
  }));
  return fitColumns(needs, width);
}

/** One line of a table. `paintCell` emphasizes the text of a cell. */
function toTableLine(
  columns: readonly Column[],
  widths: readonly (number | null)[],
  texts: readonly string[],
  paintCell: (text: string, column: number) => string = (text) => text,
): string {
  const cells = columns.flatMap(({ isNumber, cut }, index) => {
    const width = widths[index] ?? null;
    if (width === null) return [];
    const text = shorten(texts[index] ?? '', width, cut);
    const spaces = ' '.repeat(Math.max(0, width - widthOf(text)));
    const shown = text === '' ? '' : paintCell(text, index);
    return isNumber === true ? spaces + shown : shown + spaces;
  });
  return cells.join(' '.repeat(GAP)).trimEnd();
}

function textOf(cell: Cell): string {
  return typeof cell === 'object' ? cell.text : cell.toLocaleString('en');
}

function styleOf(cell: Cell | undefined): Style | null {
  return typeof cell === 'object' ? cell.style : null;
}

/** No name, list or reason of the admin API is longer. It bounds what a table of a wrong answer costs. */
const LONGEST_CELL = 4_000;

/** Makes a text from elsewhere safe for a cell: one line without control characters. */
function toCellText(text: string): string {
  return shorten(withoutControls(text.slice(0, 2 * LONGEST_CELL), ' '), LONGEST_CELL);
}

/** Makes a text from elsewhere safe for a terminal: one line without control characters, at most 1,000 columns. */
export function toOneLine(text: string): string {
  return shorten(withoutControls(text.slice(0, 2 * LONGEST_CELL), ' '), 1_000, 'end');
}

/** What a column of a table needs. Widths are columns of the terminal. */
interface ColumnNeed {
  /** The width of its widest text. */
  readonly natural: number;
  /** The least width at which its texts still tell something; null: they are never shortened. */
  readonly least: number | null;
  /** On a narrow terminal, columns of the largest rank are left out first. One of rank 0 always stays. */
  readonly rank: number;
}

/** The spaces between two columns. */
export const GAP = 2;

/**
 * Fits a table into `total` columns of a terminal. Returns the width of each column; null for one that is left out.
 * It leaves out as few as are needed to show the others at their least widths, and shares what is left among those that
 * are shortened. What cannot fit even so has columns narrower than their least.
 */
export function fitColumns(needs: readonly ColumnNeed[], total: number): readonly (number | null)[] {
  const floors = needs.map(({ natural, least }) => (least === null ? natural : Math.min(natural, least)));
  const isShown = needs.map(() => true);
  const sumOf = (widths: readonly number[]) => {
    const shown = widths.filter((_, index) => isShown[index]);
    return shown.reduce((sum, width) => sum + width, 0) + GAP * (shown.length - 1);
  };
  for (const index of inOrderOfLeaving(needs)) {
    if (sumOf(floors) <= total) break;
    isShown[index] = false;
  }
  const widths = [...floors];
  const canShrink = (index: number) =>
    isShown[index] && needs[index]?.least !== null && (widths[index] ?? 0) > 1;
  const canGrow = (index: number) => isShown[index] && (widths[index] ?? 0) < (needs[index]?.natural ?? 0);
  // One by one, so that the columns that are shortened become equally wide.
  for (let over = sumOf(widths) - total; over > 0; over--) {
    const widest = pick(widths, canShrink, (a, b) => a > b);
    if (widest === null) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  for (let left = total - sumOf(widths); left > 0; left--) {
    const narrowest = pick(widths, canGrow, (a, b) => a < b);
    if (narrowest === null) break;
    widths[narrowest] = (widths[narrowest] ?? 0) + 1;
  }
  return widths.map((width, index) => (isShown[index] ? width : null));
}

/** The columns that may be left out, in their order. Of one rank, the last goes first. */
function inOrderOfLeaving(needs: readonly ColumnNeed[]): readonly number[] {
  const optional = [...needs.keys()].filter((index) => (needs[index]?.rank ?? 0) > 0);
  return optional.toSorted((a, b) => (needs[b]?.rank ?? 0) - (needs[a]?.rank ?? 0) || b - a);
}

/** The first index of those that may be picked whose width is better than that of all others; null if there is none. */
function pick(
  widths: readonly number[],
  isAllowed: (index: number) => boolean | undefined,
  isBetter: (a: number, b: number) => boolean,
): number | null {
  let best: number | null = null;
  for (const [index, width] of widths.entries()) {
    if (!isAllowed(index)) continue;
    if (best === null || isBetter(width, widths[best] ?? 0)) best = index;
  }
  return best;
}
