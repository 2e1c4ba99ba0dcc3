/** Runs test files with a mutant that is on from the start; 0: none. */
export interface WholeRun {
  readonly id: number;
  readonly tests: readonly string[];
}

/** What one process of the campaign does, as its worker reads it from a file. */
export interface Plan {
  /** The file that the worker appends its results to. */
  readonly log: string;
  /** The mutants of the room: their numbers go from 1 to this one. */
  readonly mutantCount: number;
  /** The mutants that nothing has killed, and that may still be tried: for how many milliseconds more. */
  readonly alive: readonly (readonly [id: number, restMs: number])[];
  /** Tests that take longer wait for a later round. */
  readonly maxTestMs: number;
  /** The tests that waited for this round; null: all are tried. */
  readonly tests: readonly string[] | null;
  /** The tests that an earlier process has brought to their end in this round. */
  readonly endedTests: readonly string[];
  /** A file whose tests are run without a mutant after each mutant, because kills were retracted there; empty: none. */
  readonly carefulFile: string;
  /** The mutant that is on from the start, when the modules load; 0: none is; null: mutants are switched on test by test. */
  readonly wholeRun: number | null;
  /** The runs that the process makes one after another, each in workers of its own; null: it makes one, of all files. */
  readonly wholeRuns: readonly WholeRun[] | null;
}

/** What a worker reports, one line of JSON each. */
export type Report =
  /** A test ran without a mutant, and reached these. */
  | { readonly kind: 'reached'; readonly test: string; readonly ms: number; readonly ids: readonly number[] }
  /** Modules or hooks of a file reached these before its first test. */
  | { readonly kind: 'reached early'; readonly file: string; readonly ids: readonly number[] }
  /** A test is being tried with a mutant. */
  | { readonly kind: 'try'; readonly id: number }
  | { readonly kind: 'survived'; readonly id: number; readonly ms: number }
  | { readonly kind: 'killed'; readonly id: number; readonly test: string; readonly how: HowKilled }
  /** These kills are not to be believed: the test failed without a mutant soon afterwards. */
  | { readonly kind: 'retracted'; readonly ids: readonly number[] }
  /** A test is of no use here: it fails when it runs a second time in one process. */
  | { readonly kind: 'unrepeatable'; readonly test: string }
  /** A test waits for a later round. */
  | { readonly kind: 'slow'; readonly file: string; readonly test: string }
  /** The process is not fit for more, and is to be replaced. */
  | { readonly kind: 'worn'; readonly file: string }
  | { readonly kind: 'whole run'; readonly id: number; readonly ms: number; readonly hasPassed: boolean }
  | { readonly kind: 'test ended'; readonly test: string }
  | { readonly kind: 'file ended'; readonly file: string };

/** By what a mutant was noticed. */
export type HowKilled = 'failure' | 'time' | 'loop' | 'uncaught';

/** The variable of the environment with the path of the plan. */
export const PLAN_VARIABLE = 'SPANGATE_MUTATION_PLAN';
