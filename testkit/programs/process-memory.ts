import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';

/** Begins to watch the peak anew. Linux only: `man 5 proc_pid_clear_refs`. */
export async function resetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, '5');
}

/** The most resident bytes since the last reset. */
export const readPeakBytes = (pid: number): number => read(pid, 'VmHWM');

/** The resident bytes of now. */
export const readResidentBytes = (pid: number): number => read(pid, 'VmRSS');

function read(pid: number, name: string): number {
  const kib = new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}
