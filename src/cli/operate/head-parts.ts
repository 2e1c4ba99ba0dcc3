import { memberOf } from '#base/parsed';
import { shorten, toOneLine, widthOf } from '#cli/terminal';
import { toFigureText } from '../tables/figure-text.ts';

/** On a narrower terminal the lines of the head are cut: folded, they would take the place of the rows. */
const LEAST_FOLDED = 60;

/**
 * Joins texts by two spaces. On a terminal of this width, what does not fit goes on in the next line, which is indented;
 * null: everything is in one line.
 */
export function foldParts(parts: readonly string[], terminalWidth: number | null): readonly string[] {
  const width = (terminalWidth ?? 0) < LEAST_FOLDED ? null : terminalWidth;
  const lines: string[] = [];
  for (const part of parts.map(toOneLine)) {
    const longer = lines.length === 0 ? part : `${lines.at(-1)}  ${part}`;
    if (width === null || widthOf(longer) <= width) lines.splice(-1, 1, longer);
    else lines.push(lines.length === 0 ? shorten(part, width) : `  ${shorten(part, Math.max(1, width - 2))}`);
  }
  return lines;
}

/** The gateway's name and version. */
export function toIdentity(gateway: unknown): readonly string[] {
  const parts = [memberOf(gateway, 'name'), memberOf(gateway, 'version')];
  const known = parts.filter((part) => typeof part === 'string');
  return known.length === 0 ? [] : [known.join(' ')];
}

/** One decimal for fractions below 100, otherwise none but thousands separators. */
export function toDecimal(value: unknown): string {
  if (typeof value !== 'number') return '-';
  return Number.isInteger(value) ? value.toLocaleString('en') : toFigureText(value, 100);
}
