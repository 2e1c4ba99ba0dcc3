import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** A path that should be that of a file of ours is that of something else. The message names the path. */
export class OddFileError extends Error {
  override readonly name = 'OddFileError';
  readonly code: 'not_a_file' | 'too_large';

  constructor(path: string, code: OddFileError['code']) {
    super(code === 'too_large' ? `${path} is far too large to be ours` : `${path} is not a regular file`);
    this.code = code;
  }
}

/** How a file is opened: for reading; to be written anew; to be appended to, and read. */
const FLAGS = {
  read: constants.O_RDONLY,
  replace: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
  append: constants.O_RDWR | constants.O_CREAT | constants.O_APPEND,
} as const;

/**
 * Opens a file if it is one. To open a FIFO waits for its other side, which takes one of the four threads that do
 * everything with files; to read a device may never end. Rejects with an OddFileError or the system's error.
 */
export async function openRegularFile(
  path: string,
  purpose: keyof typeof FLAGS,
  mode?: number,
): Promise<FileHandle> {
  const file = await open(path, FLAGS[purpose] | constants.O_NONBLOCK, mode).catch((error: unknown) => {
    // A FIFO that nobody reads, a socket.
    throw isErrno(error, 'ENXIO') ? new OddFileError(path, 'not_a_file') : error;
  });
  try {
    if (!(await file.stat()).isFile()) throw new OddFileError(path, 'not_a_file');
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Reads a file of ours, which has no more than `maxBytes`. Rejects with an OddFileError or the system's error. */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await openRegularFile(path, 'read');
  const { size } = await file.stat();
  if (size > maxBytes) throw new OddFileError(path, 'too_large');
  const bytes = Buffer.alloc(size);
  let readCount = 0;
  // One that grows meanwhile is read as far as it was.
  while (readCount < size) {
    const { bytesRead } = await file.read(bytes, readCount, size - readCount, readCount);
    if (bytesRead === 0) break;
    readCount += bytesRead;
  }
  return bytes.subarray(0, readCount);
}

/** Whether it is a system error with this code. */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
