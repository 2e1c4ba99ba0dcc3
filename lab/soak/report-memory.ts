import { writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/*
 * Loaded into the gateway with `node --import`: writes what its heap holds to a file, again and again. Nothing of the
 * gateway itself is changed.
 */

const PERIOD_MS = 1_000;
const path = process.env.SOAK_MEMORY_FILE;

if (isMainThread && path !== undefined) {
  const write = () => writeFileSync(path, JSON.stringify(process.memoryUsage()));
  write();
  setInterval(write, PERIOD_MS).unref();
}
