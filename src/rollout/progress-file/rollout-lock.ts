import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { StartError } from '#base';
import type { Invocation } from '#cli/command';
import { lockState, StateInUseError } from '#state-dir';

/**
 * Makes this process the only one that uses a state file, until the lock is disposed. The lock of a process that was
 * killed does not count. Its folder stays: another rollout may be about to lock it. Throws a StartError that says who
 * uses the file.
 */
export async function lockRollout(
  path: string,
  { pid, stderr }: Pick<Invocation, 'pid' | 'stderr'>,
): Promise<AsyncDisposable> {
  const folder = `${path}.lock`;
  const log = {
    warn: () =>
      stderr.write(`gateway: warning: ${path} cannot be locked: a second rollout would not be noticed\n`),
  };
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const lock = await lockState(folder, { pid, host: hostname(), log });
    return { [Symbol.asyncDispose]: () => lock.release() };
  } catch (error) {
    if (error instanceof StateInUseError) {
      const { owner } = error;
      const who = owner === null ? '' : ` (pid ${owner.pid} on host ${owner.host})`;
      throw new StartError(`another rollout is under way${who}; it uses ${path}`, error);
    }
    const { code = 'not writable' } = error as NodeJS.ErrnoException;
    throw new StartError(`cannot lock ${path} (${code})`, error);
  }
}
