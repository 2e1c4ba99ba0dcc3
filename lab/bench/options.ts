import { resolve } from 'node:path';
import { toCount } from '#testkit/programs/program.ts';

/** The command line. */
export interface Options {
  /** Names of targets; null: all. */
  readonly only: readonly string[] | null;
  readonly cases: readonly string[] | null;
  readonly isQuick: boolean;
  readonly isInstall: boolean;
  readonly isList: boolean;
  readonly rounds: number;
  readonly runMs: number;
  readonly firstWarmMs: number;
  readonly baseline: string | null;
  readonly nodeFlags: readonly string[];
  /** Whether the results are written into docs/evidence/benchmarks.md: those of a whole run, or when asked. */
  readonly writes: boolean;
}

/** What --help prints. */
export const USAGE = `npm run bench -- [options]
  Measures the gateway beside other proxies, and writes docs/evidence/benchmarks.md.
  --quick              the main cases, short: about five minutes
  --only a,b           these targets
  --cases a,b          these cases
  --baseline CHECKOUT  another checkout of this repository as the target "baseline", to see the effect of a change
  --node-flags=FLAGS   for the gateway's Node: '--cpu-prof --cpu-prof-dir=/tmp/profile', '--perf-basic-prof'
  --rounds N           measurements of each target (5, quick 3), in turn: A B C A B C …
  --run-ms N           length of one measurement (2000, quick 700)
  --write              write docs/evidence/benchmarks.md even though this is not a whole run
  --install            install the rivals into the cache folder, measure nothing
  --list               the names of targets and cases`;

/** The options as `parseArgs` takes them. */
export const OPTIONS = {
  quick: { type: 'boolean' },
  only: { type: 'string' },
  cases: { type: 'string' },
  baseline: { type: 'string' },
  'node-flags': { type: 'string' },
  rounds: { type: 'string' },
  'run-ms': { type: 'string' },
  write: { type: 'boolean' },
  install: { type: 'boolean' },
  list: { type: 'boolean' },
} as const;

/** The values that `parseArgs` found. */
type Values = {
  readonly [Name in keyof typeof OPTIONS]?: (typeof OPTIONS)[Name]['type'] extends 'boolean'
    ? boolean
    : string;
};

/** Fills in the defaults. */
export function toOptions(values: Values): Options {
  const { quick = false, write = false, install = false, list = false } = values;
  const only = values.only?.split(',') ?? null;
  const cases = values.cases?.split(',') ?? null;
  return {
    only,
    cases,
    isQuick: quick,
    isInstall: install,
    isList: list,
    rounds: toCount(values.rounds ?? (quick ? '3' : '5')),
    runMs: toCount(values['run-ms'] ?? (quick ? '700' : '2000')),
    // V8 compiles for some seconds: the first ones cost more than the rest.
    firstWarmMs: quick ? 1000 : 8000,
    baseline: values.baseline === undefined ? null : resolve(values.baseline),
    nodeFlags: values['node-flags']?.split(' ') ?? [],
    writes: write || (!quick && only === null && cases === null),
  };
}
