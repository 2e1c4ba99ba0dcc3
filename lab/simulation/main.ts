import { startProgram, toCount } from '#testkit/programs/program.ts';
import { replay } from './campaign/replay.ts';
import { sumResults } from './campaign/results-file.ts';
import { runPlanted } from './campaign/run-planted.ts';
import { runSeeds } from './campaign/run-seeds.ts';

const USAGE = `npm run simulate -- [options]
  Runs whole gateways in a simulated world: network, clock, chance, disk, replicas, collector, Redis, clients and
  operators come from one seed. Prints the first seed in which something happens that must not, shrinks its world, and
  exits with 1.
  --seeds N    number of worlds (2000)
  --first N    the first seed (1)
  --jobs N     processes (the number of cores)
  --minutes N  ends after so many minutes, with what it has done (no limit)
  --results FILE  appends to the file what was done, block by block
  --sum FILES  runs nothing, and adds up such files: a.jsonl,b.jsonl
  --seed N     one world
  --trace      prints each step of it
  --keep LIST  of its actions only these, by number: 0,3,4, or none (all)
  --planted    plants known faults into the sources, one at a time, and tells which seed finds each
  --fault TEXT with --planted: only the faults whose names contain it
  --write      writes the result into docs/evidence/reliability.md`;

const options = startProgram(USAGE, {
  seeds: { type: 'string', default: '2000' },
  first: { type: 'string', default: '1' },
  jobs: { type: 'string', default: '0' },
  minutes: { type: 'string', default: '0' },
  results: { type: 'string', default: '' },
  sum: { type: 'string', default: '' },
  seed: { type: 'string', default: '' },
  trace: { type: 'boolean', default: false },
  keep: { type: 'string', default: '' },
  planted: { type: 'boolean', default: false },
  fault: { type: 'string', default: '' },
  write: { type: 'boolean', default: false },
});

const range = {
  first: toCount(options.first),
  seeds: toCount(options.seeds),
  jobs: toCount(options.jobs),
  minutes: toCount(options.minutes),
  isWritten: options.write,
};
const keep = toNumbers(options.keep);
if (options.sum !== '') process.exitCode = sumResults(options.sum.split(','), options.write);
else if (options.planted) process.exitCode = await runPlanted(range, options.fault);
else if (options.seed !== '') process.exitCode = await replay(toCount(options.seed), keep, options.trace);
else process.exitCode = await runSeeds(range, options.results);

/** Null: all. */
function toNumbers(list: string): readonly number[] | null {
  if (list === '') return null;
  return list === 'none' ? [] : list.split(',').map(toCount);
}
