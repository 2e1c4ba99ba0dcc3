import { readdirSync, readFileSync } from 'node:fs';

/** Linux reports CPU times in ticks of 1/100 s to user space, whatever the kernel's own clock (proc_pid_stat(5)). */
const US_PER_TICK = 10_000;
const PAGE_BYTES = 4096;

/** The CPU time, in µs, that a process, its threads, its descendants and its reaped children have used. */
export function readCpuUs(pid: number): number {
  return sumOverTree(pid, (fields) => {
    const [utime, stime, cutime, cstime] = fields.slice(11, 15).map(Number);
    return ((utime ?? 0) + (stime ?? 0) + (cutime ?? 0) + (cstime ?? 0)) * US_PER_TICK;
  });
}

/** The resident memory, in bytes, of a process and its descendants; what they share counts for each. */
export function readRssBytes(pid: number): number {
  return sumOverTree(pid, (fields) => Number(fields[21]) * PAGE_BYTES);
}

/** Sums over the fields of /proc/PID/stat that follow the name: the first is the state, field 3 of the manual. */
function sumOverTree(pid: number, toValue: (fields: readonly string[]) => number): number {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return 0;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return childrenOf(pid).reduce((sum, child) => sum + sumOverTree(child, toValue), toValue(fields));
}

function childrenOf(pid: number): readonly number[] {
  const threads = list(`/proc/${pid}/task`);
  return threads.flatMap((thread) =>
    (read(`/proc/${pid}/task/${thread}/children`) ?? '').split(' ').filter(Boolean).map(Number),
  );
}

/** A process may end between two reads: then it has nothing to tell. */
function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function list(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
