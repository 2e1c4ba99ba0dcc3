import { PLANTED_FAULTS } from './planted-faults.ts';
import { writeScripts } from './scripts.ts';
import { type SeedRange, search } from './search.ts';

/** Plants each fault and searches for it. Prints a table; returns 1 if one is not found. */
export async function runPlanted(range: SeedRange): Promise<number> {
  let missedCount = 0;
  console.log('| planted fault | found by seed | what was seen |\n|---|---:|---|');
  for (const { name, patch } of PLANTED_FAULTS) {
    await using scripts = await writeScripts(patch);
    const { finding } = await search(scripts.directory, range);
    if (finding === null) missedCount++;
    console.log(
      `| ${name} | ${finding === null ? `none of ${range.seeds}` : finding.seed} | ${toCell(finding?.text ?? '')} |`,
    );
  }
  return missedCount === 0 ? 0 : 1;
}

/** The beginning of a finding. */
function toCell(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return (line.length <= 110 ? line : `${line.slice(0, 110)} …`).replaceAll('|', '\\|');
}
