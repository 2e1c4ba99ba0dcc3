import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** What the command line asks for. */
export interface Options {
  /** Names of targets; null: all. */
  readonly only: readonly string[] | null;
  readonly cases: readonly string[] | null;
  readonly isQuick: boolean;
  readonly isInstall: boolean;
  readonly rounds: number;
  readonly runMs: number;
  readonly firstWarmMs: number;
  readonly baseline: string | null;
  readonly nodeFlags: readonly string[];
  /** Whether docs/benchmarks.md gets the results: of a whole run, or when asked. */
  readonly writes: boolean;
}

/** What --help prints. */
export const USAGE = `npm run bench -- [options]
  --quick              the main cases, short: about five minutes
  --only a,b           these targets
  --cases a,b          these cases
  --baseline CHECKOUT  another checkout of this repository as the target "baseline", to see what a change moved
  --node-flags=FLAGS   for the gateway's Node: '--cpu-prof --cpu-prof-dir=/tmp/profile', '--perf-basic-prof'
  --rounds N           measurements of each target (5, quick 3), taken in turns: A B C A B C …
  --run-ms N           length of one measurement (2000, quick 700)
  --write              write docs/benchmarks.md even though this is not a whole run
  --install            install the rivals into the cache folder, measure nothing
  --list               the names of targets and cases`;

/** Reads the command line; throws on what it does not know. */
export function parseOptions(args: readonly string[]): Options | 'help' | 'list' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      cases: { type: 'string' },
      baseline: { type: 'string' },
      'node-flags': { type: 'string' },
      rounds: { type: 'string' },
      'run-ms': { type: 'string' },
      write: { type: 'boolean', default: false },
      install: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  if (values.list) return 'list';
  const { quick } = values;
  const only = values.only?.split(',') ?? null;
  const cases = values.cases?.split(',') ?? null;
  return {
    only,
    cases,
    isQuick: quick,
    isInstall: values.install,
    rounds: Number(values.rounds ?? (quick ? 3 : 5)),
    runMs: Number(values['run-ms'] ?? (quick ? 700 : 2000)),
    // V8 compiles for some seconds: what a gateway costs in its first ones nobody pays for long.
    firstWarmMs: quick ? 1000 : 8000,
    baseline: values.baseline === undefined ? null : resolve(values.baseline),
    nodeFlags: values['node-flags']?.split(' ') ?? [],
    writes: values.write || (!quick && only === null && cases === null),
  };
}
