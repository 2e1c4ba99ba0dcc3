import { readdirSync, readFileSync, statSync } from 'node:fs';

/** For listeners, files, the collector, Redis and probes. */
const RESERVED = 64;
/** For the admin API: a share of all, up to the connections that it accepts at most. */
const ADMIN = { divisor: 8, max: 1_000 } as const;
/** One to the client and one to a replica. */
const PER_CONNECTION = 2;

/**
 * How many connections of clients the process has file descriptors for. The kernel takes connections that no descriptor
 * is left for and closes them, and no connection to a replica can be opened then: so fewer are accepted.
 *
 * @param maxFiles how many files the process may open; null: nobody knows
 */
export function capConnections(wanted: number, maxFiles: number | null): number {
  if (maxFiles === null) return wanted;
  const forAdmin = Math.min(ADMIN.max, Math.floor(maxFiles / ADMIN.divisor));
  const forClients = Math.floor((maxFiles - RESERVED - forAdmin) / PER_CONNECTION);
  return Math.max(1, Math.min(wanted, forClients));
}

/** How many files the process may open (RLIMIT_NOFILE); null where /proc does not say. */
export function readMaxFiles(): number | null {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}

const OPEN_FILES = '/proc/self/fd';

/** How many files and sockets the process has open; null where /proc does not say. */
export function countOpenFiles(): number | null {
  try {
    // Linux before 6.2 has no size there: to list ten thousand names takes milliseconds.
    return statSync(OPEN_FILES).size || readdirSync(OPEN_FILES).length;
  } catch {
    return null;
  }
}
