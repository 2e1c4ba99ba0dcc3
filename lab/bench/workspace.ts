import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The checkout. */
export const ROOT = join(import.meta.dirname, '../..');

/** Where rivals and the compiled programs are kept: outside the checkout, under XDG_CACHE_HOME or ~/.cache. */
export const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'spangate/bench');

/** The compiled load driver and mock replica. */
export interface NativePrograms {
  readonly driver: string;
  readonly replica: string;
}

/** Compiles lab/bench/native with gcc unless these sources have been compiled before; throws without gcc. */
export function buildNative(): NativePrograms {
  const sources = join(import.meta.dirname, 'native');
  const hash = createHash('sha256');
  for (const file of readdirSync(sources).sort()) hash.update(readFileSync(join(sources, file)));
  const folder = join(CACHE, `native-${hash.digest('hex').slice(0, 12)}`);
  mkdirSync(folder, { recursive: true });
  const compile = (name: string) => {
    const program = join(folder, name);
    if (!existsSync(program))
      execFileSync('gcc', ['-O2', '-Wall', '-o', program, join(sources, `${name}.c`), '-lm']);
    return program;
  };
  return { driver: compile('load-driver'), replica: compile('mock-replica') };
}

/** A port of 127.0.0.1 that nothing listened on a moment ago. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}
