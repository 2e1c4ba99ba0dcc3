import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ROOT } from '#testkit/programs/results.ts';
import type { Mutant } from '../mutants/find-mutants.ts';
import { filesIn, mutantsOf } from '../mutants/room-mutants.ts';
import type { MutatedRoom } from '../rooms.ts';
import { type HowKilled, PLAN_VARIABLE, type Plan, type Report, type WholeRun } from './plan.ts';

/**
 * How long the tests of each round may take: quick ones kill most mutants, and slow ones get those that are left. Tests
 * that take even longer, such as those that explore many histories, try no mutants.
 */
const MAX_TEST_MS = [40, 250, 3_000];
/** For how long a mutant is tried: those in the way of every request are reached by every test. */
const MAX_MUTANT_MS = 4_000;
/** The same for one that is listed as equivalent: it survives every test. */
const MAX_LISTED_MS = 500;
/** A process that reports nothing for so long hangs in its mutant, beyond what it notices itself. */
const SILENCE_MS = 60_000;
/** And so does one that tries a mutant: it would end the run itself, if the mutant left it a turn. */
const MAX_TRY_MS = 25_000;
/** Only a mutant that has silenced so many processes is the cause: one may have had to wait for a busy machine. */
const SILENCED_PROCESSES = 2;
/** A run with a mutant that is on from the start may take so many times as long as one without, and so much longer. */
const WHOLE_RUN_FACTOR = 5;
const WHOLE_RUN_MS = 60_000;
/** Only tests that hang take so long without a mutant. */
const MAX_NORMAL_RUN_MS = 600_000;
/** The mirror of the sources comes first. */
const MAX_WHOLE_RUN_FILES = 6;
const POLL_MS = 200;
/** Processes that run side by side: most of their time they wait for tests that hang. */
const LANE_COUNT = 3;
/** A room whose processes wear out more often than this is broken. */
const MAX_PROCESSES = 150;

/** What became of a mutant. `unreached`: no test runs its code. `untried`: it is not in the sample, or time was over. */
export type Fate = 'killed' | 'survived' | 'unreached' | 'untried';

/** A mutant and what became of it. */
export interface Outcome {
  readonly mutant: Mutant;
  readonly fate: Fate;
  /** By what it was noticed, and in which test; null: it was not. */
  readonly killed: { readonly how: HowKilled | 'whole run'; readonly test: string } | null;
  /** How many runs of tests it has survived. */
  readonly survivedRuns: number;
}

/** What the run of a room has shown. */
export interface RoomResult {
  readonly outcomes: readonly Outcome[];
  /** Tests that fail when they run twice in one process: they tried no mutants. */
  readonly unrepeatable: readonly string[];
}

/** Which mutants are tried, and for how long. */
export interface Selection {
  /** Null: all of them. */
  readonly sample: { readonly size: number; readonly seed: number } | null;
  /** By `performance.now()`; then what is left is untried. */
  readonly deadlineMs: number;
  /** Only mutants of files whose path contains this. */
  readonly filter: string;
  /** Only tests of files whose path contains this. */
  readonly tests: string;
  /** Whether a mutant is listed as equivalent. */
  readonly isListed: (mutant: Mutant) => boolean;
}

/** What is known of the mutants of a room while they are tried. */
interface Course {
  readonly killed: Map<number, { readonly how: HowKilled | 'whole run'; readonly test: string }>;
  readonly restMs: Map<number, number>;
  readonly survivedRuns: Map<number, number>;
  /** In tests. */
  readonly reached: Set<number>;
  /** Only when modules load, or in hooks: the files that do. */
  readonly early: Map<number, Set<string>>;
  /** The test files that run something of the sources in a folder. */
  readonly testsOf: Map<string, Set<string>>;
  /** How many processes have fallen silent in a mutant. */
  readonly silenced: Map<number, number>;
  /** The tests that wait for a later round. */
  readonly slow: Set<string>;
  readonly unrepeatable: Set<string>;
}

/** What one of the processes that run side by side has done. Each has mutants of its own. */
interface Lane {
  readonly index: number;
  readonly ended: Set<string>;
  /** In this round. */
  readonly endedTests: Set<string>;
  /** The mutant that is on; 0: none. */
  trying: number;
  carefulFile: string;
  isWorn: boolean;
}

/** Tries the mutants of a room on its tests. `tell` says how far it is. */
export async function runRoom(
  room: MutatedRoom,
  { sample, deadlineMs, filter, tests: testFilter, isListed }: Selection,
  tell: (text: string) => void,
): Promise<RoomResult> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-mutation-'));
  const mutants = [...mutantsOf(room).values()].flatMap((source) => source.mutants);
  const all = mutants.map((_, index) => index + 1).filter((id) => mutants[id - 1]?.file.includes(filter));
  const chosen = sample === null ? all : shuffled(all, sample.seed).slice(0, sample.size);
  const maxMsOf = (id: number): number => {
    const mutant = mutants[id - 1];
    return mutant !== undefined && isListed(mutant) ? MAX_LISTED_MS : MAX_MUTANT_MS;
  };
  const course: Course = {
    killed: new Map(),
    restMs: new Map(chosen.map((id) => [id, maxMsOf(id)])),
    survivedRuns: new Map(),
    reached: new Set(),
    early: new Map(),
    testsOf: new Map(),
    silenced: new Map(),
    slow: new Set(),
    unrepeatable: new Set(),
  };
  const lanes = Array.from(
    { length: LANE_COUNT },
    (_, index): Lane => ({
      index,
      ended: new Set(),
      endedTests: new Set(),
      trying: 0,
      carefulFile: '',
      isWorn: false,
    }),
  );
  const isOver = (): boolean => performance.now() > deadlineMs;
  let processes = 0;

  const runProcess = async (
    lane: Lane,
    files: readonly string[],
    plan: Pick<Plan, 'maxTestMs' | 'tests' | 'wholeRuns'>,
  ) => {
    processes++;
    const log = join(folder.path, `${processes}.jsonl`);
    const planPath = join(folder.path, `${processes}.json`);
    const alive = [...course.restMs].filter(
      ([id, restMs]) => id % LANE_COUNT === lane.index && restMs > 0 && !course.killed.has(id),
    );
    const whole: Plan = {
      log,
      mutantCount: mutants.length,
      alive,
      carefulFile: lane.carefulFile,
      endedTests: [...lane.endedTests],
      wholeRun: null,
      ...plan,
    };
    writeFileSync(planPath, JSON.stringify(whole));
    writeFileSync(log, '');
    // In CI, Vitest writes no snapshots.
    const env = { ...process.env, [PLAN_VARIABLE]: planPath, CI: '1' };
    const args = [join(import.meta.dirname, 'room-process.ts'), room.name, ...files];
    const stdio = ['ignore', 'ignore', plan.wholeRuns === null ? 'inherit' : 'ignore'] as const;
    // A group of its own: what tests start ends with it.
    const child = spawn(process.execPath, args, { cwd: ROOT, env, detached: true, stdio: [...stdio] });
    const end = (): void => killGroup(child);
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    return { child, log };
  };

  const roundOf = async (
    lane: Lane,
    files: readonly string[],
    maxTestMs: number,
    tests: readonly string[] | null,
  ): Promise<void> => {
    lane.ended.clear();
    lane.endedTests.clear();
    for (
      let left = files;
      left.length > 0 && !isOver();
      left = files.filter((file) => !lane.ended.has(file))
    ) {
      if (processes > MAX_PROCESSES) throw new Error(`the tests of ${room.name} wear out their processes`);
      const { child, log } = await runProcess(lane, left, { maxTestMs, tests, wholeRuns: null });
      using tail = followLog(log);
      lane.isWorn = false;
      lane.trying = 0;
      let heardMs = performance.now();
      let isSilent = false;
      while (child.exitCode === null && child.signalCode === null && !lane.isWorn) {
        const lines = tail.take();
        if (lines.length > 0) heardMs = performance.now();
        for (const line of lines) note(course, lane, mutants, line);
        tell(`${course.killed.size} killed, ${lane.ended.size}/${files.length} files`);
        isSilent = performance.now() - heardMs > (lane.trying > 0 ? MAX_TRY_MS : SILENCE_MS);
        if (isSilent || isOver()) break;
        await wait(POLL_MS);
      }
      await endGroup(child);
      for (const line of tail.take()) note(course, lane, mutants, line);
      if (isSilent && lane.trying > 0) {
        const count = (course.silenced.get(lane.trying) ?? 0) + 1;
        course.silenced.set(lane.trying, count);
        if (count === SILENCED_PROCESSES)
          course.killed.set(lane.trying, { how: 'time', test: 'a whole process' });
      } else if (!lane.isWorn && !isOver() && !left.some((file) => lane.ended.has(file))) {
        throw new Error(`the tests of ${room.name} cannot run: ${left.join(' ')}`);
      }
    }
  };

  /** A mutant that runs only when modules load, or in hooks, has runs of its own. */
  const tryFromStart = async (lane: Lane): Promise<void> => {
    /** How long tests take without a mutant; none: they fail. */
    const normalMs = new Map<string, number>();
    let left = toWholeRuns(course, mutants, files, (id) => id % LANE_COUNT === lane.index);
    while (left.length > 0 && !isOver()) {
      const { child, log } = await runProcess(lane, files, { maxTestMs: 0, tests: null, wholeRuns: left });
      using tail = followLog(log);
      let heardMs = performance.now();
      const take = (): void => {
        for (const line of tail.take()) {
          const [run] = left;
          if (line.kind !== 'whole run' || run === undefined) continue;
          heardMs = performance.now();
          left = left.slice(1);
          noteWholeRun(course, run, line, normalMs);
        }
      };
      const isSilent = (): boolean => {
        const [run] = left;
        const usualMs = run === undefined ? undefined : normalMs.get(run.tests.join(' '));
        const limitMs = usualMs === undefined ? MAX_NORMAL_RUN_MS : usualMs * WHOLE_RUN_FACTOR + WHOLE_RUN_MS;
        return performance.now() - heardMs > limitMs;
      };
      while (child.exitCode === null && child.signalCode === null && !isOver() && !isSilent()) {
        take();
        tell(`${course.killed.size} killed, ${left.length} whole runs left`);
        await wait(POLL_MS);
      }
      await endGroup(child);
      take();
      const [run] = left;
      if (run === undefined || isOver()) return;
      const count = (course.silenced.get(run.id) ?? 0) + 1;
      course.silenced.set(run.id, count);
      if (!isSilent()) throw new Error(`the tests of ${room.name} cannot run: ${run.tests.join(' ')}`);
      if (run.id === 0 || count === SILENCED_PROCESSES) {
        if (run.id !== 0) course.killed.set(run.id, { how: 'whole run', test: run.tests[0] ?? '' });
        left = left.slice(1);
      }
    }
  };

  const files = filesIn(room.tests, '.test.ts').filter((file) => file.includes(testFilter));
  for (const [index, maxTestMs] of MAX_TEST_MS.entries()) {
    const slow = [...course.slow];
    course.slow.clear();
    const waiting = files.filter((file) => slow.some((test) => test.startsWith(`${file} > `)));
    const [those, tests] = index === 0 ? [files, null] : [waiting, slow];
    await Promise.all(lanes.map((lane) => roundOf(lane, those, maxTestMs, tests)));
  }
  await Promise.all(lanes.map(tryFromStart));
  const wasOver = isOver();
  const outcomes = mutants.map((mutant, index): Outcome => {
    const id = index + 1;
    const killed = course.killed.get(id) ?? null;
    const survivedRuns = course.survivedRuns.get(id) ?? 0;
    const isReached = course.reached.has(id) || course.early.has(id);
    if (!course.restMs.has(id)) return { mutant, fate: 'untried', killed: null, survivedRuns };
    if (killed !== null) return { mutant, fate: 'killed', killed, survivedRuns };
    // One that has survived some runs counts as left: only killed ones would make the score too good.
    if (wasOver && survivedRuns === 0) return { mutant, fate: 'untried', killed, survivedRuns };
    return { mutant, fate: isReached ? 'survived' : 'unreached', killed, survivedRuns };
  });
  return { outcomes, unrepeatable: [...course.unrepeatable] };
}

/** The runs of mutants that no test reaches after the modules have loaded: with tests of their folders, once without. */
function toWholeRuns(
  course: Course,
  mutants: readonly Mutant[],
  files: readonly string[],
  isIncluded: (id: number) => boolean,
): readonly WholeRun[] {
  const byTests = new Map<string, WholeRun[]>();
  for (const [id, loading] of course.early) {
    if (!isIncluded(id) || course.reached.has(id) || !course.restMs.has(id)) continue;
    const using = course.testsOf.get(dirname(mutants[id - 1]?.file ?? '')) ?? loading;
    const tests = files.filter((file) => using.has(file)).slice(0, MAX_WHOLE_RUN_FILES);
    const key = tests.join(' ');
    const runs = byTests.get(key) ?? [{ id: 0, tests }];
    runs.push({ id, tests });
    byTests.set(key, runs);
  }
  return [...byTests.values()].flat();
}

function noteWholeRun(
  course: Course,
  { id, tests }: WholeRun,
  { ms, hasPassed }: Extract<Report, { kind: 'whole run' }>,
  normalMs: Map<string, number>,
): void {
  const key = tests.join(' ');
  if (id === 0) {
    if (hasPassed) normalMs.set(key, ms);
  } else if (hasPassed || !normalMs.has(key)) course.survivedRuns.set(id, 1);
  else course.killed.set(id, { how: 'whole run', test: tests[0] ?? '' });
}

function note(course: Course, lane: Lane, mutants: readonly Mutant[], report: Report): void {
  switch (report.kind) {
    case 'reached':
      for (const id of report.ids) {
        course.reached.add(id);
        const folder = dirname(mutants[id - 1]?.file ?? '');
        const tests = course.testsOf.get(folder) ?? new Set();
        course.testsOf.set(folder, tests.add(report.test.split(' > ')[0] ?? ''));
      }
      return;
    case 'reached early':
      for (const id of report.ids) {
        const files = course.early.get(id) ?? new Set();
        course.early.set(id, files.add(report.file));
      }
      return;
    case 'try':
      lane.trying = report.id;
      return;
    case 'survived':
      lane.trying = 0;
      course.restMs.set(report.id, (course.restMs.get(report.id) ?? 0) - report.ms);
      course.survivedRuns.set(report.id, (course.survivedRuns.get(report.id) ?? 0) + 1);
      return;
    case 'killed':
      lane.trying = 0;
      course.killed.set(report.id, { how: report.how, test: report.test });
      return;
    case 'retracted':
      for (const id of report.ids) course.killed.delete(id);
      return;
    case 'slow':
      course.slow.add(report.test);
      return;
    case 'worn':
      lane.carefulFile = report.file;
      lane.isWorn = true;
      return;
    case 'test ended':
      lane.endedTests.add(report.test);
      return;
    case 'file ended':
      lane.ended.add(report.file);
      return;
    case 'whole run':
      return;
    case 'unrepeatable':
      course.unrepeatable.add(report.test);
  }
}

/** Reads the lines that are appended to a file. */
function followLog(path: string): Disposable & { take(): readonly Report[] } {
  const file = openSync(path, 'r');
  const chunk = Buffer.alloc(1024 * 1024);
  let rest = '';
  return {
    take() {
      const reports: Report[] = [];
      for (;;) {
        const length = readSync(file, chunk);
        if (length === 0) return reports;
        const lines = `${rest}${chunk.toString('utf8', 0, length)}`.split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) reports.push(JSON.parse(line));
      }
    },
    [Symbol.dispose]: () => closeSync(file),
  };
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // They have ended.
  }
}

/** Ends a process and all that it has started. */
async function endGroup(child: ChildProcess): Promise<void> {
  killGroup(child);
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

/** The same order for the same seed: Fisher and Yates, with a linear congruential generator. */
function shuffled(ids: readonly number[], seed: number): readonly number[] {
  const result = [...ids];
  let state = (seed * 2_654_435_761) >>> 0;
  for (let index = result.length - 1; index > 0; index--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const other = Math.floor((state / 2 ** 32) * (index + 1));
    const held = result[index];
    const taken = result[other];
    if (held === undefined || taken === undefined) continue;
    result[index] = taken;
    result[other] = held;
  }
  return result;
}
