import { join } from 'node:path';
import { startProgram } from '#testkit/programs/program.ts';
import { countDoors, type DoorCounts } from './count-doors.ts';

/** What must not grow. Each becomes smaller with the house, down to what stands behind it. */
const BOUNDS = {
  /** Files imported from outside, beyond one for each room. */
  moreDoors: 5,
  /** The most names that a door exports: what needs more is two rooms. */
  exports: 12,
  /** Imports by tests, lab and test kit that pass by a door; 0. */
  reachingInside: 169,
  /** Lines of src/ and otel/ that are not generated; 52,000. */
  lines: 83_206,
  /** Lines of layers.config.ts; 150. */
  layerLines: 150,
} as const;

const values = startProgram(
  `npm run lab -- doors [options]
  Counts the rooms of src/ and otel/, their doors and what passes by them. Exits with 1 if a bound is passed.
  --inside   lists the imports that pass by a door`,
  { inside: { type: 'boolean', default: false } },
);

const counts = countDoors(join(import.meta.dirname, '../..'));
print(counts);
const problems = judge(counts);
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

function print({ rooms, doors, reachingInside, lineCount, layerLineCount }: DoorCounts): void {
  console.log(`${rooms.length} rooms, ${doors.length} files imported from outside their room`);
  for (const { door, exportCount } of rooms.toSorted((a, b) => b.exportCount - a.exportCount)) {
    console.log(`  ${door.padEnd(28)}${exportCount} exports`);
  }
  console.log(`${reachingInside.length} imports of tests, lab and test kit pass by a door`);
  if (values.inside) for (const { from, to } of reachingInside) console.log(`  ${from} → ${to}`);
  console.log(`${lineCount} written lines in src/ and otel/, ${layerLineCount} in layers.config.ts`);
}

function judge({ rooms, doors, reachingInside, lineCount, layerLineCount }: DoorCounts): readonly string[] {
  const atMost = (what: string, count: number, bound: number) =>
    count <= bound ? [] : [`${what}: ${count}, more than ${bound}`];
  return [
    ...atMost('files imported from outside', doors.length, rooms.length + BOUNDS.moreDoors),
    ...rooms.flatMap(({ door, exportCount }) => atMost(`exports of ${door}`, exportCount, BOUNDS.exports)),
    ...atMost('imports that pass by a door', reachingInside.length, BOUNDS.reachingInside),
    ...atMost('lines', lineCount, BOUNDS.lines),
    ...atMost('lines of layers.config.ts', layerLineCount, BOUNDS.layerLines),
  ];
}
