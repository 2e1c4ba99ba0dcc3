import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Takes out of package-lock.json what depends on the machine that wrote it, or misleads the one that reads it:
 *
 * - `engines` of the packages. npm compares them with the Node that runs npm, not with the Node of the package `node`
 *   that runs everything else, and prints a warning for each.
 * - `resolved`: the registry that a package came from. Without it, npm asks the one that it is configured for.
 */

const PATH = join(import.meta.dirname, '../../package-lock.json');

/** What an entry of the lock file says, as far as this script reads it. */
interface LockEntry {
  engines?: unknown;
  resolved?: unknown;
}

const lock: { packages: Record<string, LockEntry> } = JSON.parse(await readFile(PATH, 'utf8'));
for (const [path, entry] of Object.entries(lock.packages)) {
  if (path === '') continue; // the project itself
  delete entry.engines;
  delete entry.resolved;
}
await writeFile(PATH, `${JSON.stringify(lock, null, 2)}\n`);
