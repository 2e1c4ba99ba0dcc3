import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const SCRIPT = join(import.meta.dirname, '../../docs/verify_statement.py');

/** Whether this machine has a Python that runs the script of docs/statements.md. */
export const hasPython =
  spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).status === 0;

/** Runs the script of docs/statements.md. */
export function proveWithPython(
  statement: string,
  key: string,
  files: readonly string[],
): { readonly exitCode: number | null; readonly lines: readonly string[] } {
  const { status, stdout, stderr } = spawnSync('python3', [SCRIPT, statement, key, ...files], {
    encoding: 'utf8',
  });
  if (stderr !== '') throw new Error(stderr);
  return { exitCode: status, lines: stdout.trimEnd().split('\n') };
}
