import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import {
  type RunnerTask,
  type RunnerTestCase,
  type RunnerTestFile,
  TestRunner,
  type TestTryOptions,
} from 'vitest';
import { ROOT } from '#testkit/programs/results.ts';
import { type HowKilled, PLAN_VARIABLE, type Plan, type Report } from './plan.ts';
import { MutantSwitch } from './switch.ts';

/** A run with a mutant may take so many times as long as one without, and so much longer. */
const PATIENCE_FACTOR = 5;
const PATIENCE_MS = 1_000;
/** Patience is counted in turns of the event loop: on a busy machine, a turn waits as long as the test does. */
const TURN_MS = 10;
/** How many mutants are tried between two runs of a test without one. */
const CONTROL_EVERY = 25;
/** What hung tests leave behind in one process. */
const MAX_RSS_BYTES = 1_500e6;

// Some tests replace the timers.
const { setInterval, clearInterval } = globalThis;
const NEVER = new Promise<never>(() => undefined);

const plan: Plan = JSON.parse(readFileSync(process.env[PLAN_VARIABLE] ?? '', 'utf8'));
const mutants = new MutantSwitch(plan.mutantCount);
const restMs = new Map(plan.alive);
// A whole run has no turns to compare with: its time ends it.
mutants.activate(plan.wholeRun ?? 0, Number.POSITIVE_INFINITY);

const report = (line: Report): void => appendFileSync(plan.log, `${JSON.stringify(line)}\n`);

/** What one run of a test is for. */
type Purpose = 'reach' | 'repeat' | 'control' | 'mutant' | 'end';

/** The runs of one test: one that shows which mutants it reaches, one that shows that it can be repeated, one for each mutant. */
interface Trial {
  readonly name: string;
  purpose: Purpose;
  /** The mutant that is on, or was in the last run; 0: none. */
  mutant: number;
  normalMs: number;
  normalTurns: number;
  startedMs: number;
  waiting: number[];
  /** What was killed since the test last passed without a mutant. */
  unconfirmed: number[];
  sinceControl: number;
  how: HowKilled | null;
  /** A run has begun and is not concluded. */
  isOpen: boolean;
  /** Ends the run at once. */
  fail: (how: HowKilled) => void;
}

/**
 * Runs each test again and again in one process, with one mutant after the other. It uses the runner's retries: a
 * run that is not the last one counts as failed, so that Vitest repeats the test with its hooks.
 */
class MutationRunner extends TestRunner {
  #trial: Trial | null = null;

  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super(config);
    const onUncaught = (): void => this.#trial?.fail('uncaught');
    process.on('uncaughtException', onUncaught);
    process.on('unhandledRejection', onUncaught);
  }

  onCollected(files: RunnerTestFile[]): void {
    if (plan.wholeRun === null) for (const file of files) runInTurn(file);
  }

  override async onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    await super.onBeforeRunTask(test);
    if (plan.wholeRun !== null || (test.mode !== 'run' && test.mode !== 'queued')) return;
    const early = mutants.takeReached();
    if (early.length > 0) report({ kind: 'reached early', file: pathOf(test), ids: early });
    test.retry = { count: Number.MAX_SAFE_INTEGER, condition: () => true };
    this.#trial = {
      name: `${pathOf(test)} > ${fullName(test)}`,
      purpose: 'reach',
      mutant: 0,
      normalMs: 0,
      normalTurns: 0,
      startedMs: 0,
      waiting: [],
      unconfirmed: [],
      sinceControl: 0,
      how: null,
      isOpen: false,
      fail: () => undefined,
    };
  }

  override async onBeforeTryTask(test: RunnerTestCase, options: TestTryOptions): Promise<void> {
    super.onBeforeTryTask(test, options);
    const trial = this.#trial;
    if (trial === null) return;
    // Vitest itself may have failed, as when it prints what a mutant has made of a value.
    if (trial.isOpen && (await this.#conclude(test, trial, true))) trial.purpose = 'end';
    trial.isOpen = true;
    trial.how = null;
    trial.startedMs = performance.now();
    if (trial.purpose === 'mutant') {
      report({ kind: 'try', id: trial.mutant });
      mutants.activate(trial.mutant, trial.normalTurns);
    }
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const run = TestRunner.getTestFn(test);
    const trial = this.#trial;
    if (trial === null) return await run();
    const { promise: failed, reject } = Promise.withResolvers<never>();
    failed.catch(() => undefined);
    trial.fail = (how) => {
      trial.how ??= how;
      reject(new Error(how));
    };
    const patienceMs = trial.normalMs * PATIENCE_FACTOR + PATIENCE_MS;
    const stop =
      trial.purpose === 'mutant' ? afterTurns(patienceMs / TURN_MS, () => trial.fail('time')) : null;
    try {
      const running = Promise.resolve(run());
      running.catch(() => undefined);
      await Promise.race([running, failed]);
    } finally {
      stop?.();
      if (mutants.isEndless) trial.how = 'loop';
      // Vitest would wait for what the test expects of a promise.
      if (trial.how !== null) Object.assign(test, { promises: [] });
      if (trial.purpose === 'reach') trial.normalTurns = mutants.turns;
      // What cleans up after the test is not what is tested.
      mutants.activate(0);
    }
  }

  override async onAfterRetryTask(test: RunnerTestCase, options: TestTryOptions): Promise<void> {
    await super.onAfterRetryTask(test, options);
    const trial = this.#trial;
    const { result } = test;
    if (trial === null || result === undefined || result.state === 'skip') return;
    const isLast = await this.#conclude(test, trial, result.state === 'fail' || trial.how !== null);
    result.state = isLast ? 'pass' : 'fail';
    result.errors = isLast ? [] : [{ message: 'there is more to try' }];
    result.attempts = [];
    if (!isLast) return;
    report({ kind: 'test ended', test: trial.name });
    this.#trial = null;
    mutants.takeReached();
  }

  override async onAfterRunFiles(files: RunnerTestFile[]): Promise<void> {
    super.onAfterRunFiles(files);
    for (const file of files) {
      report({ kind: 'file ended', file: relative(ROOT, file.filepath) });
      if (process.memoryUsage.rss() > MAX_RSS_BYTES) await this.#replace(relative(ROOT, file.filepath));
    }
  }

  /** Says what a run has shown, and prepares the next one. True: it was the last. */
  async #conclude(test: RunnerTestCase, trial: Trial, hasFailed: boolean): Promise<boolean> {
    const ms = performance.now() - trial.startedMs;
    const { name } = trial;
    trial.isOpen = false;
    switch (trial.purpose) {
      case 'end':
        return true;
      case 'reach': {
        const reached = mutants.takeReached();
        if (hasFailed) {
          report({ kind: 'unrepeatable', test: name });
          return true;
        }
        report({ kind: 'reached', test: name, ms, ids: reached });
        if (plan.endedTests.includes(name) || plan.tests?.includes(name) === false) return true;
        trial.normalMs = ms;
        trial.waiting = reached.filter((id) => (restMs.get(id) ?? 0) > 0);
        if (trial.waiting.length === 0) return true;
        if (ms > plan.maxTestMs) {
          report({ kind: 'slow', file: pathOf(test), test: name });
          return true;
        }
        trial.purpose = 'repeat';
        return false;
      }
      case 'repeat':
        mutants.takeReached();
        if (hasFailed) {
          report({ kind: 'unrepeatable', test: name });
          return true;
        }
        trial.normalMs = Math.max(ms, trial.normalMs);
        break;
      case 'control':
        mutants.takeReached();
        trial.sinceControl = 0;
        if (hasFailed) {
          report({ kind: 'retracted', ids: trial.unconfirmed });
          await this.#replace(pathOf(test));
        }
        trial.unconfirmed = [];
        break;
      case 'mutant': {
        const { mutant } = trial;
        trial.sinceControl++;
        if (hasFailed) {
          restMs.delete(mutant);
          report({ kind: 'killed', id: mutant, test: name, how: trial.how ?? 'failure' });
          if (trial.sinceControl > 1) trial.unconfirmed.push(mutant);
        } else {
          restMs.set(mutant, (restMs.get(mutant) ?? 0) - ms);
          report({ kind: 'survived', id: mutant, ms });
        }
      }
    }
    const isDoubtful = trial.how !== null || trial.sinceControl >= controlEveryOf(test);
    const isDone = trial.waiting.length === 0;
    if (trial.purpose === 'mutant' && (isDoubtful || (isDone && trial.unconfirmed.length > 0))) {
      trial.purpose = 'control';
      return false;
    }
    const next = trial.waiting.shift();
    if (next === undefined) return true;
    trial.purpose = 'mutant';
    trial.mutant = next;
    return false;
  }

  /** Asks for another process and waits for the end of this one. */
  async #replace(file: string): Promise<never> {
    report({ kind: 'worn', file });
    return await NEVER;
  }
}

/** Calls back after so many turns of the event loop, each of which takes `TURN_MS` or longer. Returns how to stop it. */
function afterTurns(count: number, callback: () => void): () => void {
  let left = count;
  const timer = setInterval(() => {
    if (--left > 0) return;
    clearInterval(timer);
    callback();
  }, TURN_MS);
  return () => clearInterval(timer);
}

/** A mutant is on in the whole process: tests that run at the same time would share it. */
function runInTurn(task: RunnerTask): void {
  task.concurrent = false;
  if (task.type === 'suite') for (const child of task.tasks) runInTurn(child);
}

const controlEveryOf = (test: RunnerTestCase): number =>
  pathOf(test) === plan.carefulFile ? 1 : CONTROL_EVERY;
const pathOf = (test: RunnerTestCase): string => relative(ROOT, test.file.filepath);

function fullName(test: RunnerTestCase): string {
  const names = [test.name];
  for (let suite = test.suite; suite !== undefined; suite = suite.suite) names.unshift(suite.name);
  return names.filter((name) => name !== '').join(' > ');
}

// biome-ignore lint/style/noDefaultExport: Vitest loads a runner by its default export.
export default MutationRunner;
