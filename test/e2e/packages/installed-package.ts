import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
/** The admin token of every command. */
export const TOKEN = 'a-token-of-sixteen';

/** Packs the package into a new folder. Returns the folder and the path of the tarball in it. */
export async function packPackage(): Promise<{ readonly folder: string; readonly tarball: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'spangate-package-'));
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT });
  return { folder, tarball: join(folder, stdout.trim().split('\n').at(-1) ?? '') };
}

/** The path of the oldest Node that package.json allows; installs it if need be. */
export async function findOldestNode(): Promise<string> {
  return (await run(join(ROOT, 'scripts/oldest-node.sh'))).stdout.trim();
}

/** A process of the command, and what it prints. */
export interface StartedCommand {
  readonly child: ChildProcess;
  /** Resolves with the first group of the next line that matches; rejects when the output ends without one. */
  untilPrinted(pattern: RegExp): Promise<string>;
  /** Sends the signal. Resolves with the exit code, or the signal that ended the process. */
  end(signal: NodeJS.Signals): Promise<number | string>;
}

/** The `gateway` command as its users have it. */
export interface Command {
  /** Runs it until it ends; rejects unless the exit code is 0. Resolves with its standard output. */
  run(...args: string[]): Promise<string>;
  /** Starts it. The test that calls this ends it. */
  start(...args: string[]): StartedCommand;
}

/**
 * Runs `path` in a new folder, with little in the environment but an admin token. `nodeFolder`: where the `node` of its
 * first line is; none for a file that needs no Node.
 */
export async function createCommand(path: string, nodeFolder: string | null): Promise<Command> {
  const cwd = await temporaryFolder();
  const env = { PATH: `${nodeFolder === null ? '' : `${nodeFolder}:`}/usr/bin:/bin`, SVC_ADMIN_TOKEN: TOKEN };
  return {
    async run(...args) {
      return (await run(path, args, { cwd, env })).stdout;
    },
    start(...args) {
      const child = spawn(path, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
      const exited = once(child, 'exit');
      onTestFinished(async () => {
        child.kill('SIGKILL');
        await exited;
      });
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      return {
        child,
        untilPrinted: (pattern) => firstMatch(lines, pattern),
        async end(signal) {
          child.kill(signal);
          const [code, endedBy] = await exited;
          return code ?? endedBy;
        },
      };
    },
  };
}

async function firstMatch(lines: AsyncIterator<string>, pattern: RegExp): Promise<string> {
  for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
    const [, group] = pattern.exec(line.value) ?? [];
    if (group !== undefined) return group;
  }
  throw new Error(`no line of the output matches ${pattern}`);
}

/** Installs a tarball globally, under its own prefix, as a user with this Node does. Returns the path of `gateway`. */
export async function installGlobally(tarball: string, node: string): Promise<string> {
  const prefix = await mkdtemp(join(dirname(tarball), 'prefix-'));
  const env = { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` };
  const args = ['install', '--global', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', [...args, tarball], { env });
  return join(prefix, 'bin/gateway');
}
