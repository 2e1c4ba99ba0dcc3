import { startProgram, toCount } from '#testkit/programs/program.ts';
import { startProgress } from '#testkit/programs/progress.ts';
import { runRoom } from './campaign/run-room.ts';
import { EQUIVALENT_MUTANTS } from './equivalent.ts';
import { isListedIn, judge, toOneLine } from './judge.ts';
import { MUTATED_ROOMS } from './rooms.ts';
import { toPercent, writeRoom } from './write-docs.ts';

/*
 * How often do the tests notice a small fault? Each mutant is one: a condition that is always true, a boundary that is
 * off by one, a statement that is gone. All mutants of a room are compiled into its sources at once, behind a switch,
 * and each test that reaches some of them runs again in the same process, with one after the other switched on.
 * Gateways in processes and threads of their own have no mutants.
 */

const USAGE = `npm run lab -- mutation [options]
  Plants small faults into the sources, one at a time, and counts those that tests notice. Prints the others, and exits
  with 1 if lab/mutation/equivalent.ts is wrong.
  --room NAMES  only these, such as wire,otel/queue; all: ${MUTATED_ROOMS.map(({ name }) => name).join(', ')}
  --file TEXT   only mutants of files whose path contains it
  --tests TEXT  only tests of files whose path contains it: a quick look, which is not written
  --sample N    at most N mutants per room, by chance
  --seed N      the chance (1)
  --minutes N   ends after so many minutes; what is not tried by then does not count (no limit)
  --write       writes the result into docs/evidence/mutation.md`;

const options = startProgram(USAGE, {
  room: { type: 'string', default: '' },
  file: { type: 'string', default: '' },
  tests: { type: 'string', default: '' },
  sample: { type: 'string', default: '0' },
  seed: { type: 'string', default: '1' },
  minutes: { type: 'string', default: '0' },
  write: { type: 'boolean', default: false },
});

const names = options.room === '' ? MUTATED_ROOMS.map(({ name }) => name) : options.room.split(',');
const rooms = names.map((name) => {
  const room = MUTATED_ROOMS.find((each) => each.name === name);
  if (room === undefined) throw new Error(`there is no room ${name}`);
  return room;
});
const [size, seed, minutes] = [options.sample, options.seed, options.minutes].map(toCount);
const sample = size === undefined || size === 0 ? null : { size, seed: seed ?? 1 };
const deadlineMs =
  minutes === undefined || minutes === 0 ? Number.POSITIVE_INFINITY : performance.now() + minutes * 60_000;

const isListed = isListedIn(EQUIVALENT_MUTANTS);
const progress = startProgress(rooms.length);
for (const room of rooms) {
  const { outcomes, unrepeatable } = await progress.during(room.name, (tell) =>
    runRoom(room, { sample, deadlineMs, filter: options.file, tests: options.tests, isListed }, tell),
  );
  const judgement = judge(outcomes, EQUIVALENT_MUTANTS);
  const { percent, triedCount, mutantCount, killedCount, equivalentCount, left, wrongEntries } = judgement;
  console.log(
    `${room.name}: ${toPercent(percent)}; ${triedCount} of ${mutantCount} mutants, ${killedCount} killed, ` +
      `${equivalentCount} equivalent, ${left.length} left`,
  );
  for (const { mutant, fate, survivedRuns } of left) {
    const { file, line, where, original, mutated } = mutant;
    const change = `${toOneLine(original)} → ${toOneLine(mutated)}`;
    console.log(
      `  ${file}:${line} ${where}: ${change} (${fate === 'unreached' ? fate : `${survivedRuns} runs`})`,
    );
  }
  for (const test of unrepeatable) console.log(`  not repeatable: ${test}`);
  for (const entry of wrongEntries) console.error(`not equivalent: ${entry}`);
  if (wrongEntries.length > 0) process.exitCode = 1;
  if (options.write && options.tests === '' && triedCount > 0)
    writeRoom(room, judgement, sample?.seed ?? null);
}
