import { replaceBetween } from '../../support/results.ts';
import { PLANTED_FAULTS } from './planted-faults.ts';
import { writeScripts } from './scripts.ts';
import { type SeedRange, search } from './search.ts';

/** Plants each fault and searches for it. Prints a table; returns 1 if one is not found. */
export async function runPlanted(range: SeedRange): Promise<number> {
  let missedCount = 0;
  const lines = ['| planted fault | found by seed | worlds run | what was seen |', '|---|---:|---:|---|'];
  console.log(lines.join('\n'));
  for (const { name, patch, needs } of PLANTED_FAULTS) {
    await using scripts = await writeScripts(patch);
    const { finding, seeds } = await search(
      scripts.directory,
      range,
      needs === undefined ? {} : { wants: needs },
    );
    if (finding === null) missedCount++;
    const seed = finding === null ? 'none' : finding.seed;
    const line = `| ${name} | ${seed} | ${seeds} | ${toCell(finding?.text ?? '')} |`;
    console.log(line);
    lines.push(line);
  }
  if (range.isWritten) {
    replaceBetween(
      'docs/reliability.md',
      '<!-- planted -->',
      '<!-- end of what was planted -->',
      lines.join('\n'),
    );
  }
  return missedCount === 0 ? 0 : 1;
}

/** The beginning of a finding. */
function toCell(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return (line.length <= 110 ? line : `${line.slice(0, 110)} …`)
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;');
}
