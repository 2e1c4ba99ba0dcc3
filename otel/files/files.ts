/*
 * Files that are written durably, and read with a bound.
 *
 * It never knows what is in them.
 * Each file stands alone.
 */

export {
  DIRECTORY_MODE,
  FILE_MODE,
  isErrno,
  OddFileError,
  openRegularFile,
  readRegularFile,
} from './regular-file.ts';
export { writeDurably } from './write-durably.ts';
