import { escapeHtml } from './escape-html.ts';
import type { ComparedRatio } from './read-pairs.ts';

const WIDTH = 820;
const HEIGHT = 110;

/** Ratios beside this range are drawn at its ends. */
const MOST_DOUBLINGS = 1;

/** Marks of the axis, in doublings. On a narrow screen there is room for those that are `true`. */
const MARKS = [
  [-1, true],
  [-0.5, false],
  [-0.25, true],
  [-0.1, false],
  [0, true],
  [0.1, false],
  [0.25, true],
  [0.5, false],
  [1, true],
] as const;

/**
 * The distribution of ratios on a logarithmic axis: 1 is in the middle, marked. The bars take the width that there is; the
 * marks are text beside them, so that they stay as large as other text.
 */
export function toRatioPlot({ counts, median }: ComparedRatio): string {
  const widest = Math.max(0.2, ...counts.map(([ratio]) => Math.abs(Math.log2(ratio))));
  const side = Math.min(MOST_DOUBLINGS, widest);
  const shareOf = (ratio: number) => 0.5 + Math.max(-side, Math.min(side, Math.log2(ratio))) / (2.2 * side);
  const bins = new Map<number, number>();
  for (const [ratio, count] of counts) {
    const x = Math.round((WIDTH * shareOf(ratio)) / 5) * 5;
    bins.set(x, (bins.get(x) ?? 0) + count);
  }
  const highest = Math.max(1, ...bins.values());
  const bars = Array.from(bins, ([x, count]) => {
    const height = (100 * count) / highest;
    return `<rect x="${x - 2}" y="${(HEIGHT - height).toFixed(1)}" width="4" height="${height.toFixed(1)}" fill="#3b78c2"/>`;
  });
  const line = (ratio: number, colour: string, dash: string) => {
    const x = (WIDTH * shareOf(ratio)).toFixed(1);
    return `<line x1="${x}" y1="0" x2="${x}" y2="${HEIGHT}" stroke="${colour}" stroke-dasharray="${dash}" vector-effect="non-scaling-stroke"/>`;
  };
  const marks = MARKS.filter(
    ([log]) => Math.abs(log) <= side * 1.05 && (log === 0 || Math.abs(log) >= side / 5),
  ).map(([log, isMajor]) => {
    const left = (100 * shareOf(2 ** log)).toFixed(2);
    return `<span${isMajor ? '' : ' class="minor"'} style="left:${left}%">×${(2 ** log).toFixed(2)}</span>`;
  });
  const drawn = `${bars.join('')}${line(1, '#7b8794', '3 3')}${line(median, '#c0352b', '')}`;
  const label = `distribution of ratios, median ${median.toFixed(3)}`;
  return `<div class="plot" role="img" aria-label="${label}"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none">${drawn}</svg>${marks.join('')}</div>`;
}

/** How often each of these came, as bars. */
export function toBars(counts: readonly (readonly [title: string, count: number])[]): string {
  const highest = Math.max(1, ...counts.map(([, count]) => count));
  const rows = counts.map(([title, count]) => {
    const width = ((100 * count) / highest).toFixed(1);
    return `<span>${escapeHtml(title)}</span><span><i style="width:${width}%"></i></span><span>${count.toLocaleString('en')}</span>`;
  });
  return `<div class="bars">${rows.join('')}</div>`;
}
