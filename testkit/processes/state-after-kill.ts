import { cp, lstat } from 'node:fs/promises';

/** Copies the state_dir of a running gateway: the state after a kill at this moment. */
export async function stateAfterKill(stateDir: string): Promise<string> {
  const copy = `${stateDir}-of-one-killed`;
  await cp(stateDir, copy, { recursive: true, filter: async (path) => !(await lstat(path)).isSocket() });
  return copy;
}
