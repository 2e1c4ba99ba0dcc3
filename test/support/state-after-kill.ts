import { cp, lstat } from 'node:fs/promises';

/** A copy of a running gateway's state_dir beside it: what a process that is killed now would leave. */
export async function stateAfterKill(stateDir: string): Promise<string> {
  const copy = `${stateDir}-of-one-killed`;
  await cp(stateDir, copy, { recursive: true, filter: async (path) => !(await lstat(path)).isSocket() });
  return copy;
}
