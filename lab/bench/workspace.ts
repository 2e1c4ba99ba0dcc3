import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { USER_CACHE } from '#testkit/programs/user-cache.ts';

/** The rivals and the compiled programs: outside the checkout. */
export const CACHE = join(USER_CACHE, 'bench');

/** The compiled load driver and mock replica. */
export interface NativePrograms {
  readonly driver: string;
  readonly replica: string;
}

/** Compiles lab/bench/native with gcc unless these sources are compiled already; throws without gcc. */
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
