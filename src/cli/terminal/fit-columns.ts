/** What a column of a table needs. Widths are columns of the terminal. */
export interface ColumnNeed {
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
