import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { openRegularFile } from './regular-file.ts';

/** Records are about tenants: nobody else's business on this machine. */
const FILE_MODE = 0o600;

/**
 * Writes a file whole or not at all: under another name first, `${path}${suffix}`, synced, then renamed. Rejects
 * with the system's error; half a file may then be left under that other name.
 */
export async function writeDurably(path: string, content: Uint8Array, suffix: string): Promise<void> {
  const temporary = `${path}${suffix}`;
  {
    await using file = await openRegularFile(temporary, 'replace', FILE_MODE);
    await file.writeFile(content);
    await file.sync();
  }
  await rename(temporary, path);
  await using directory = await open(dirname(path), 'r');
  await directory.sync();
}
