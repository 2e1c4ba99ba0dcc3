import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** Records are about tenants: other users of this machine may not read them. */
export const FILE_MODE = 0o600;
export const DIRECTORY_MODE = 0o700;

/** A path that should name one of our files names something else. The message names the path. */
export class OddFileError extends Error {
  override readonly name = 'OddFileError';
  readonly code: 'not_a_file' | 'too_large';

  constructor(path: string, code: OddFileError['code']) {
    super(code === 'too_large' ? `${path} is far too large to be ours` : `${path} is not a regular file`);
    this.code = code;
  }
}

/** How a file is opened: to be read; to be replaced; to be appended to and read. */
const FLAGS = {
  read: constants.O_RDONLY,
  replace: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
  append: constants.O_RDWR | constants.O_CREAT | constants.O_APPEND,
} as const;

/**
 * Opens a path only if it names a regular file. Opening a FIFO would wait for its other side and block one of the four
 * threads for file operations; reading a device may never end. Rejects with an OddFileError or the system's error.
 */
export async function openRegularFile(
  path: string,
  purpose: keyof typeof FLAGS,
  mode?: number,
): Promise<FileHandle> {
  const file = await open(path, FLAGS[purpose] | constants.O_NONBLOCK, mode).catch((error: unknown) => {
    // A FIFO without a reader, or a socket.
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

/** Reads one of our files, of at most `maxBytes`. Rejects with an OddFileError or the system's error. */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await openRegularFile(path, 'read');
  const { size } = await file.stat();
  if (size > maxBytes) throw new OddFileError(path, 'too_large');
  const bytes = Buffer.alloc(size);
  let readCount = 0;
  // What is appended meanwhile is not read.
  while (readCount < size) {
    const { bytesRead } = await file.read(bytes, readCount, size - readCount, readCount);
    if (bytesRead === 0) break;
    readCount += bytesRead;
  }
  return bytes.subarray(0, readCount);
}

/** Whether an error is a system error with this code. */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
