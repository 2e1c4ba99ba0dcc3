/**
 * Where a text that is too long loses characters. The end of a name often tells it from the others, so it stays. Of a list
 * with commas the first name stays, with the number of the others.
 */
export type Cut = 'middle' | 'end' | 'list';

/** Characters that terminals show two columns wide: those of East Asian scripts, and emoji (UAX 11). */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\p{Emoji_Presentation}\u{17000}-\u{18cff}\u{20000}-\u{3fffd}]/u;
/** Characters that take no column of their own: they change the one before them. */
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}\p{Variation_Selector}]+$/u;
/** Nearly every name: each character has one column. */
const PLAIN = /^[ -~]*$/;

const ELLIPSIS = '…';

/** How many columns of a terminal a text of one line takes. It has neither controls nor colours. */
export function widthOf(text: string): number {
  return PLAIN.test(text) ? text.length : toGraphemes(text).reduce((sum, { width }) => sum + width, 0);
}

/** Shortens a text to this many columns of a terminal, with an ellipsis where characters are missing. */
export function shorten(text: string, columns: number, cut: Cut = 'middle'): string {
  if (widthOf(text) <= columns) return text;
  const [first = '', ...others] = cut === 'list' ? text.split(', ') : [];
  const rest = `, +${others.length}`;
  if (others.length > 0 && columns > 2 * rest.length) return shorten(first, columns - rest.length) + rest;
  if (columns <= ELLIPSIS.length) return ELLIPSIS.slice(0, columns);
  const room = columns - ELLIPSIS.length;
  const endRoom = cut === 'end' ? 0 : Math.floor(room / 2);
  const parts = toGraphemes(text);
  const start = takeColumns(parts, room - endRoom);
  const end = takeColumns(parts.toReversed(), endRoom).toReversed();
  return start.join('') + ELLIPSIS + end.join('');
}

/** What a reader takes for one character. */
interface Grapheme {
  readonly text: string;
  readonly width: number;
}

function toGraphemes(text: string): readonly Grapheme[] {
  // The first one takes 20 ms to make, which each command would take if it were made when this file is loaded.
  const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text);
  return Array.from(graphemes, ({ segment }) => ({ text: segment, width: toWidth(segment) }));
}

function toWidth(grapheme: string): number {
  if (WIDE.test(grapheme)) return 2;
  return ZERO_WIDTH.test(grapheme) ? 0 : 1;
}

/** The first of these characters that fit. */
function takeColumns(parts: readonly Grapheme[], columns: number): string[] {
  const taken: string[] = [];
  let left = columns;
  for (const { text, width } of parts) {
    if (width > left) break;
    left -= width;
    taken.push(text);
  }
  return taken;
}
