import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** In memory: what is written durably waits for no disk there. */
const SHARED_MEMORY = '/dev/shm';

/** Makes a folder for the files of a target, which goes when the process ends. */
export function createFuzzFolder(): string {
  const folder = mkdtempSync(join(existsSync(SHARED_MEMORY) ? SHARED_MEMORY : tmpdir(), 'spangate-fuzz-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
