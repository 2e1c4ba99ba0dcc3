import type { ComparedPairs, ComparedRatio } from './read-pairs.ts';
import { type SideRow, toSideRows } from './side-rows.ts';
import { toClassTitle } from './token-classes.ts';

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; color: #1b2530; background: #fff; max-width: 860px; margin: 32px auto; padding: 0 20px }
h1 { font-size: 22px } h2 { font-size: 17px; margin-top: 32px }
.verdict { padding: 10px 14px; border-left: 5px solid #b08a00; background: #f6f7f9 }
.good { border-color: #1a7f4b } .bad { border-color: #c0352b }
table { border-collapse: collapse } td, th { padding: 4px 14px 4px 0; text-align: left; border-bottom: 1px solid #e3e7eb }
td:not(:first-child), th:not(:first-child) { text-align: right } tr:nth-child(2) td { overflow-wrap: anywhere; min-width: 80px }
.plot { position: relative; margin: 8px 0 20px; padding-bottom: 22px } .plot svg { display: block; width: 100%; height: 110px; border-bottom: 1px solid #9aa5b1 }
.plot span { position: absolute; bottom: 0; transform: translateX(-50%); font-size: 12px; color: #52606d }
.bars { display: grid; grid-template-columns: fit-content(45%) 1fr max-content; gap: 4px 10px; align-items: center; margin: 8px 0 20px; font-size: 13px }
.bars i { display: block; height: 14px; background: #3b78c2 }
@media (max-width: 600px) { .plot .minor { display: none } td, th { padding-right: 8px } }
@media (prefers-color-scheme: dark) { body { background: #14191f; color: #dfe5ea } .verdict { background: #1d242c } td, th { border-color: #2c353f } .plot span { color: #9aa7b3 } }
`;

/** The report as one HTML file that loads nothing, with plots. */
export function toHtmlReport(compared: ComparedPairs): string {
  const { title, verdict, sentence, settings, pairs, ratios, outputs, again, candidate, baseline } = compared;
  const kind = ['good', 'bad'].includes(verdict) ? verdict : 'undecided';
  const parts = outputs.partsAfter.map((count, place) => [toClassTitle(place), count] as const);
  const rows = toSideRows(candidate, baseline);
  const body = [
    `<h1>${escapeHtml(title)}</h1>`,
    `<p class="verdict ${kind}">${escapeHtml(sentence)}</p>`,
    `<p>${escapeHtml(settings)}: ${pairs}.</p>`,
    '<h2>The shadow as a multiple of its primary, pair by pair</h2>',
    ...ratios.map(
      (ratio) =>
        `<h3>${escapeHtml(ratio.title)}: ×${ratio.median.toFixed(3)} (80 % of pairs from ×${ratio.p10.toFixed(2)} to ×${ratio.p90.toFixed(2)})</h3>${toRatioPlot(ratio)}`,
    ),
    '<h2>Both sides</h2>',
    `<table><tr><th></th><th>candidate</th><th>baseline</th></tr>${rows.map(toTableRow).join('')}</table>`,
    ...(outputs.compared === 0
      ? []
      : [
          '<h2>Outputs that should be the same each time</h2>',
          `<p>${outputs.equal.toLocaleString('en')} of ${outputs.compared.toLocaleString('en')} are the same.</p>`,
          ...(parts.length === 0 ? [] : ['<h3>Where the others part</h3>', toBars(parts)]),
          ...(parts.length === 0
            ? []
            : ['<h3>What the shadow says when it is asked once more</h3>', toBars(again)]),
        ]),
  ];
  return `<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title><style>${STYLE}</style>\n${body.join('\n')}\n</html>\n`;
}

function toTableRow(row: SideRow): string {
  return `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`;
}

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
function toRatioPlot({ counts, median }: ComparedRatio): string {
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
function toBars(counts: readonly (readonly [title: string, count: number])[]): string {
  const highest = Math.max(1, ...counts.map(([, count]) => count));
  const rows = counts.map(([title, count]) => {
    const width = ((100 * count) / highest).toFixed(1);
    return `<span>${escapeHtml(title)}</span><span><i style="width:${width}%"></i></span><span>${count.toLocaleString('en')}</span>`;
  });
  return `<div class="bars">${rows.join('')}</div>`;
}

/** Text as text of a page, whatever it holds. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
