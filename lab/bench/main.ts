import { startProgram } from '#testkit/programs/program.ts';
import { CASES } from './cases.ts';
import { OPTIONS, type Options, toOptions, USAGE } from './options.ts';
import { toTable } from './report.ts';
import { installRivals } from './rivals/install.ts';
import { runCase } from './run-case.ts';
import { TARGETS } from './targets/all.ts';
import { buildNative } from './workspace.ts';
import { toCircumstances, writeDocs } from './write-docs.ts';

const options = toOptions(startProgram(USAGE, OPTIONS));
if (options.isList) list();
else if (options.isInstall) await installRivals();
else await bench(options);

function list(): void {
  console.log(`targets: ${TARGETS.map(({ name }) => name).join(' ')}`);
  console.log(`cases: ${CASES.map(({ name }) => name).join(' ')}`);
}

async function bench(options: Options): Promise<void> {
  const programs = buildNative();
  const targets = choose(TARGETS, options.only, 'target').filter(({ name, findObstacle }) => {
    const obstacle = findObstacle(options.baseline);
    if (obstacle !== null && (name !== 'baseline' || options.only !== null))
      console.log(`${name} is omitted: ${obstacle}`);
    return obstacle === null;
  });
  const cases = choose(CASES, options.cases, 'case').filter(
    ({ isQuick }) => !options.isQuick || options.cases !== null || isQuick,
  );
  const sections: string[] = [toCircumstances(targets, process.argv.slice(2))];
  console.log(`\n${sections[0]}`);
  for (const benchCase of cases) {
    const chosen = targets.filter(
      ({ name, isFor }) => (benchCase.targets?.includes(name) ?? true) && (isFor?.(benchCase.name) ?? true),
    );
    if (chosen.length === 0) continue;
    const rows = await runCase(benchCase, chosen, programs, options);
    const section = `### ${benchCase.name}\n\n${benchCase.title}\n\n${toTable(benchCase, rows)}`;
    console.log(`\n${section}`);
    sections.push(section);
  }
  if (options.writes) writeDocs(sections.join('\n\n'));
}

function choose<T extends { readonly name: string }>(
  all: readonly T[],
  names: readonly string[] | null,
  what: string,
): readonly T[] {
  for (const name of names ?? [])
    if (!all.some((one) => one.name === name))
      throw new Error(`no such ${what}: ${name} (--list names them)`);
  return names === null ? all : all.filter(({ name }) => names.includes(name));
}
