import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { PLANTED_FAULTS } from './planted-faults.ts';
import { writeScripts } from './scripts.ts';
import { type SeedRange, search } from './search.ts';

const DOCUMENT = 'docs/evidence/reliability.md';
const HEAD = [
  '| planted fault | found by seed | worlds run | commit | what was seen |',
  '|---|---:|---:|---|---|',
];

/**
 * Plants each fault whose name contains `part`, and searches for it. Prints a table; returns 1 if one is not found. Rows of
 * other faults stay in the documentation as they are.
 */
export async function runPlanted(range: SeedRange, part: string): Promise<number> {
  let missedCount = 0;
  const rows = readRows();
  console.log(HEAD.join('\n'));
  for (const { name, patch, needs } of PLANTED_FAULTS.filter((fault) => fault.name.includes(part))) {
    await using scripts = await writeScripts(patch);
    const { finding, seeds } = await search(
      scripts.directory,
      range,
      needs === undefined ? {} : { wants: needs },
    );
    if (finding === null) missedCount++;
    const seed = finding === null ? 'none' : finding.seed;
    const { commit } = readCircumstances();
    const row = `| ${name} | ${seed} | ${seeds} | ${commit} | ${toCell(finding?.text ?? '')} |`;
    console.log(row);
    rows.set(name, row);
    if (range.isWritten) writeRows(rows);
  }
  return missedCount === 0 ? 0 : 1;
}

/** The rows in the documentation, by the name of their fault. */
function readRows(): Map<string, string> {
  const text = readFileSync(join(import.meta.dirname, '../../..', DOCUMENT), 'utf8');
  const [, table = ''] = /<!-- planted -->(.*?)<!-- end of what was planted -->/s.exec(text) ?? [];
  const lines = table.split('\n').filter((line) => line.startsWith('| '));
  return new Map(lines.map((line) => [line.split(' | ', 1)[0]?.slice(2) ?? '', line]));
}

function writeRows(rows: ReadonlyMap<string, string>): void {
  const table = PLANTED_FAULTS.flatMap(({ name }) => rows.get(name) ?? []);
  replaceBetween(
    DOCUMENT,
    '<!-- planted -->',
    '<!-- end of what was planted -->',
    [...HEAD, ...table].join('\n'),
  );
}

/** The beginning of a finding. */
function toCell(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return (line.length <= 110 ? line : `${line.slice(0, 110)} …`)
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;');
}
