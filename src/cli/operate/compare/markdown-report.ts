import type { ComparedPairs } from './read-pairs.ts';
import { toSideRows } from './side-rows.ts';
import { toClassTitle } from './token-classes.ts';

/** The report as Markdown, for a pull request or a ticket. */
export function toMarkdownReport(compared: ComparedPairs): string {
  const { title, sentence, settings, pairs, ratios, outputs, again, tools, candidate, baseline, skipped } =
    compared;
  const lines = [
    `# ${title}`,
    '',
    `**${sentence}**`,
    '',
    `${settings}: ${pairs}.`,
    '',
    '| The shadow as a multiple of its primary | 10 % of pairs below | median | 90 % below |',
    '|---|---:|---:|---:|',
    ...ratios.map(
      ({ title: what, p10, median, p90 }) => `| ${what} | ${[p10, median, p90].map(times).join(' | ')} |`,
    ),
    '',
    '| | candidate | baseline |',
    '|---|---:|---:|',
    ...toSideRows(candidate, baseline).map(toRow),
    '',
  ];
  if (outputs.compared > 0) {
    const parted = outputs.compared - outputs.equal;
    lines.push(
      `${outputs.equal.toLocaleString('en')} of ${outputs.compared.toLocaleString('en')} outputs that should be the same each time are the same.`,
      '',
    );
    if (parted > 0) {
      lines.push(
        '| Where they part | outputs |',
        '|---|---:|',
        ...outputs.partsAfter.flatMap((count, place) =>
          count === 0 ? [] : [`| ${toClassTitle(place)} | ${count} |`],
        ),
        '',
        '| The shadow is asked once more | |',
        '|---|---:|',
        ...again.map(([what, count]) => toRow([what, String(count)])),
        '',
      );
    }
  }
  if (tools.compared > 0)
    lines.push(`${tools.same} of ${tools.compared} answers that call tools call them alike.`, '');
  if (skipped.length > 0)
    lines.push(
      `Not copied although it was their turn: ${skipped.map(([why, count]) => `${count} ${why}`).join(', ')}.`,
      '',
    );
  return lines.join('\n');
}

/** A row of a table. A bar in a cell would begin another one. */
function toRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function times(ratio: number): string {
  return `×${ratio.toFixed(3)}`;
}
