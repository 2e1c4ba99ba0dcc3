/*
 * Files that are written durably, and read with a bound.
 *
 * It never knows what is in them.
 * Each file stands alone.
 */

import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { FILE_MODE, openRegularFile } from './regular-file.ts';

export {
  DIRECTORY_MODE,
  FILE_MODE,
  isErrno,
  OddFileError,
  openRegularFile,
  readRegularFile,
} from './regular-file.ts';

/**
 * Writes a file whole or not at all, so that it survives a power cut: first under another name, `${path}${suffix}`, then
 * synced and renamed. Rejects with the system's error; half a file is removed, and is left under the other name only by a kill.
 */
export async function writeDurably(path: string, content: Uint8Array, suffix: string): Promise<void> {
  const temporary = `${path}${suffix}`;
  {
    await using file = await openRegularFile(temporary, 'replace', FILE_MODE);
    try {
      await file.writeFile(content);
      await file.sync();
    } catch (error) {
      // On a full disk it would take the rest.
      await rm(temporary, { force: true });
      throw error;
    }
  }
  await rename(temporary, path);
  await using directory = await open(dirname(path), 'r');
  await directory.sync();
}
