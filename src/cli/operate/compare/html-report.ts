import { escapeHtml } from './escape-html.ts';
import { toBars, toRatioPlot } from './plots.ts';
import type { ComparedPairs } from './read-pairs.ts';
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
