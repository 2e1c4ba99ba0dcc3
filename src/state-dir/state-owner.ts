import { lstat, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FILE_MODE, readRegularFile } from '#otel/files';

const FILE_NAME = 'owner.json';
const MAX_BYTES = 4_096;

/** How often the owner touches the file. */
const TOUCH_MS = 2_000;
/** A file that was not touched for this long has no running owner. */
const STALE_MS = 6_000;
const POLL_MS = 500;

/** The process that has locked a directory. */
export interface StateOwner {
  /** The name of its lock. */
  readonly lock: string;
  readonly pid: number;
  /** The name of its machine or container. */
  readonly host: string;
}

/** Returns who has locked the directory; null if that is not known. */
export async function readOwner(directory: string): Promise<StateOwner | null> {
  try {
    const bytes = await readRegularFile(join(directory, FILE_NAME), MAX_BYTES);
    return parseOwner(JSON.parse(bytes.toString('utf8')));
  } catch {
    return null; // absent or damaged: it only tells who holds the lock
  }
}

function parseOwner(value: unknown): StateOwner | null {
  if (typeof value !== 'object' || value === null) return null;
  const { lock, pid, host } = value as Readonly<Record<string, unknown>>;
  if (typeof lock !== 'string' || typeof pid !== 'number' || !Number.isSafeInteger(pid)) return null;
  return typeof host === 'string' && /^[\w.:-]{1,255}$/.test(host) ? { lock, pid, host } : null;
}

/**
 * Writes the file of the owner, and touches it from time to time, so that processes on other machines see that it runs.
 * Never rejects: without the file, the lock still holds on this machine.
 */
export async function keepOwner(
  directory: string,
  owner: StateOwner,
): Promise<{ readonly remove: () => Promise<void> }> {
  const path = join(directory, FILE_NAME);
  await writeFile(path, `${JSON.stringify(owner)}\n`, { mode: FILE_MODE }).catch(() => undefined);
  const timer = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, TOUCH_MS);
  timer.unref();
  return {
    async remove() {
      clearInterval(timer);
      const last = await readOwner(directory);
      if (last?.lock === owner.lock) await unlink(path).catch(() => undefined);
    },
  };
}

/**
 * Whether the owner still runs on its own machine, which shares the directory through a network file system: it touches
 * the file. Takes up to STALE_MS if the owner has just ended. `reference`: the path of a file that was just created
 * there, so that both times are those of the file server.
 */
export async function isTouched(directory: string, reference: string): Promise<boolean> {
  const path = join(directory, FILE_NAME);
  const startedMs = performance.now();
  const [created, first] = await Promise.all([changedAtMs(reference), changedAtMs(path)]);
  if (created === null || first === null) return false;
  for (;;) {
    const latest = await changedAtMs(path);
    if (latest === null) return false;
    if (latest !== first) return true;
    if (created + (performance.now() - startedMs) - first > STALE_MS) return false;
    await sleep(POLL_MS);
  }
}

/** The time of the last change of a file's data or attributes: milliseconds of the file server's clock. Null: no file. */
async function changedAtMs(path: string): Promise<number | null> {
  try {
    return (await lstat(path)).ctimeMs;
  } catch {
    return null;
  }
}
