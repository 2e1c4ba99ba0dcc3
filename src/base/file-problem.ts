/**
 * Why the system could not open, read or write a file, in a few words; its code if there are none. Never its message,
 * which may hold another path. `missing`: the words where there is no such file.
 */
export function toFileProblem(error: unknown, missing = 'there is no such file'): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return code === 'ENOENT' ? missing : (PROBLEMS.get(code) ?? code);
}

/** The code of a system error on a file, with what it means before it if that is known: `the disk is full (ENOSPC)`. */
export function explainFileCode(code: string): string {
  const words = PROBLEMS.get(code);
  return words === undefined ? code : `${words} (${code})`;
}

const PROBLEMS: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'permission denied'],
  ['ENOTDIR', 'a part of its path is a file'],
  ['EISDIR', 'it is a directory'],
  ['ENXIO', 'it is not a regular file'],
  ['ENOSPC', 'the disk is full'],
  ['EROFS', 'the file system is read-only'],
  ['EDQUOT', 'the quota of the disk is used up'],
]);
