import fc from 'fast-check';
import type { EngineCase, ScriptedEngine } from '#testkit/engines/engine.ts';
import { asksOf, Cell, type Difference, ENGINES } from '#testkit/engines/matrix.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';

const USAGE = `npm run engines -- [options]
  Prints the matrix of engines and cases: does a client get through the gateway what the engine sends for its own
  request? A cell counts the comparisons, each with other stream_options and other cuts of the reads. Exits with 1 if
  any differed.
  --cuts N   cuts of the reads per cell (8)
  --sources  also prints where the bytes of each case are known from`;

/** Fixed, so that two runs of one commit do the same. */
const SEED = 1;

const values = startProgram(USAGE, {
  cuts: { type: 'string', default: '8' },
  sources: { type: 'boolean', default: false },
});
const cuts = [
  [],
  ...fc.sample(fc.array(fc.nat(20_000), { minLength: 1, maxLength: 6 }), {
    numRuns: toCount(values.cuts),
    seed: SEED,
  }),
];

interface CellResult {
  readonly count: number;
  readonly differences: readonly Difference[];
}

async function runCell(engine: ScriptedEngine, exchange: EngineCase): Promise<CellResult> {
  await using cell = await Cell.start(engine, exchange);
  const differences: Difference[] = [];
  const asks = asksOf(exchange);
  for (const ask of asks) {
    for (const places of cuts) {
      const difference = await cell.compare(ask, places);
      if (difference !== null) differences.push(difference);
    }
  }
  return { count: asks.length * cuts.length, differences };
}

function toCell(result: CellResult | undefined): string {
  if (result === undefined) return '–';
  const { count, differences } = result;
  return differences.length === 0 ? `= ${count}` : `DIFFERS ${differences.length}/${count}`;
}

function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows)
    console.log(
      row
        .map((text, i) => text.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

const names = [...new Set(ENGINES.flatMap(({ cases }) => cases.map(({ name }) => name)))].sort();
const results = new Map<ScriptedEngine, Map<string, CellResult>>();
for (const engine of ENGINES) {
  const column = new Map<string, CellResult>();
  results.set(engine, column);
  for (const exchange of engine.cases) column.set(exchange.name, await runCell(engine, exchange));
}

printTable([
  ['', ...ENGINES.map(({ name }) => name)],
  ...names.map((name) => [name, ...ENGINES.map((engine) => toCell(results.get(engine)?.get(name)))]),
]);
if (values.sources) {
  console.log();
  for (const { name, cases } of ENGINES) {
    for (const exchange of cases) console.log(`${name}, ${exchange.name}: ${exchange.source}`);
  }
}

const cells = [...results].flatMap(([engine, column]) =>
  [...column].map(([name, result]) => ({ name: `${engine.name}, ${name}`, ...result })),
);
for (const { name, differences } of cells) {
  for (const { ask, cuts: places, expected, actual } of differences.slice(0, 1)) {
    console.log(
      `\n${name}; stream_options ${ask}; cut at ${places.join(', ')}\n--- engine\n${expected}\n--- client\n${actual}`,
    );
  }
}
const count = cells.reduce((sum, cell) => sum + cell.count, 0);
const differing = cells.reduce((sum, cell) => sum + cell.differences.length, 0);
console.log(`\n${count} comparisons in ${cells.length} cells, ${differing} different.`);
process.exitCode = differing === 0 ? 0 : 1;
