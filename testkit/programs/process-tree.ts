import { readdirSync, readFileSync } from 'node:fs';

/** Linux reports CPU times in ticks of 1/100 s to user space, whatever the kernel's own clock (proc_pid_stat(5)). */
const US_PER_TICK = 10_000;
const PAGE_BYTES = 4096;

/** The CPU time of a process, its threads and its descendants so far; see `toSpentUs`. */
export interface CpuReading {
  /** Counted in ticks; includes threads that have ended and reaped children. */
  readonly coarseUs: number;
  /** Exact to the nanosecond, of live threads only (/proc/PID/task/TID/schedstat); NaN if the kernel has none. */
  readonly fineUs: number;
  readonly processCount: number;
}

/** Reads the CPU time of a process tree; 0 for pid 0, which is no process. */
export function readCpu(pid: number): CpuReading {
  const processes = treeOf(pid);
  return {
    coarseUs: sum(processes.map(readTicks)) * US_PER_TICK,
    fineUs: sum(processes.flatMap((id) => threadsOf(id).map((thread) => readRunTimeUs(id, thread)))),
    processCount: processes.length,
  };
}

/** The CPU time in µs between two readings: the fine one, unless it lacks a thread that ended. */
export function toSpentUs(before: CpuReading, after: CpuReading): number {
  const coarseUs = after.coarseUs - before.coarseUs;
  const fineUs = after.fineUs - before.fineUs;
  // User and system time of each process are rounded by less than a tick in both readings.
  const roundingUs = 4 * US_PER_TICK * after.processCount;
  return Math.abs(fineUs - coarseUs) <= roundingUs ? fineUs : coarseUs;
}

/** The resident memory of a process and its descendants in bytes; shared memory counts for each. */
export function readRssBytes(pid: number): number {
  return sum(treeOf(pid).map((id) => Number(readStat(id)[21] ?? 0))) * PAGE_BYTES;
}

/** The ids of a process and its descendants. */
export function treeOf(pid: number): readonly number[] {
  if (pid === 0) return [];
  const children = threadsOf(pid).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(treeOf)];
}

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** utime, stime, cutime and cstime. */
function readTicks(pid: number): number {
  return sum(readStat(pid).slice(11, 15).map(Number));
}

/** The fields of /proc/PID/stat that follow the name: the first is the state, field 3 of the manual. */
function readStat(pid: number): readonly string[] {
  const stat = read(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function readRunTimeUs(pid: number, thread: string): number {
  const [runTimeNs = ''] = read(`/proc/${pid}/task/${thread}/schedstat`).split(' ');
  return runTimeNs === '' ? Number.NaN : Number(runTimeNs) / 1000;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Empty if the process has ended since the previous read. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
