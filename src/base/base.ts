/*
 * The ground floor of src/: small things that any room may need and none owns. Errors that end a start, calls in turn,
 * checks at an interval, names that are alike.
 *
 * It never knows what uses it: no configuration, no replica, no record.
 * Each file stands alone: begin with the one whose name you need.
 */

export { closestName, isSameName } from './closest-name.ts';
export { createInTurn } from './in-turn.ts';
export { RepeatedCheck } from './repeated-check.ts';
export { orStartError, StartError, tryCertificates, UnusableSettingError } from './start-error.ts';

/** Does the work for each item, at most `limit` at a time. Rejects with the first rejection. */
export async function inParallel<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = Iterator.from(items);
  const workOff = async () => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: limit }, workOff));
}

const MINUTE_MS = 60_000;

/** Wraps `act` so that it runs on the first call and then at most once per minute: for log lines that clients cause. */
export function atMostOncePerMinute<T extends unknown[]>(
  act: (...values: T) => void,
): (...values: T) => void {
  let nextMs = Number.NEGATIVE_INFINITY;
  return (...values) => {
    const nowMs = performance.now();
    if (nowMs < nextMs) return;
    nextMs = nowMs + MINUTE_MS;
    act(...values);
  };
}

/**
 * Why the system could not open, read or write a file, in a few words; its code if there are none. Never its message,
 * which may hold another path. `missing`: the words where there is no such file.
 */
export function toFileProblem(error: unknown, missing = 'there is no such file'): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return code === 'ENOENT' ? missing : (PROBLEMS.get(code) ?? code);
}

/** The code of a system error on a file, with what it means before it if that is known: `the disk is full (ENOSPC)`. */
export function explainFileCode(code: string): string {
  const words = PROBLEMS.get(code);
  return words === undefined ? code : `${words} (${code})`;
}

const PROBLEMS: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'permission denied'],
  ['EEXIST', 'it is there already, and is not overwritten'],
  ['ENOTDIR', 'a part of its path is a file'],
  ['EISDIR', 'it is a directory'],
  ['ENXIO', 'it is not a regular file'],
  ['ENOSPC', 'the disk is full'],
  ['EROFS', 'the file system is read-only'],
  ['EDQUOT', 'the quota of the disk is used up'],
]);
