import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** A path that leads to no regular file. `message` says it in a few words. */
export class NotRegularError extends Error {
  override readonly name = 'NotRegularError';
}

/**
 * Opens a file for reading. Opening a FIFO would wait for its writer, and a device may never end. Rejects with a
 * NotRegularError or the system's error.
 */
export async function openRegularFile(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stats = await file.stat();
  if (stats.isFile()) return file;
  await file.close();
  if (stats.isDirectory()) throw new NotRegularError('it is a directory');
  throw new NotRegularError('it is not a regular file: for a pipe, give - and the pipe as standard input');
}
