import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const built = new Set<string>();

/** How the image of a checkout starts its gateway. */
export interface ImageStart {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Builds a checkout, once in this process, and returns the arguments of Node and the settings of memory with which its
 * image starts. Sources that Node runs itself take 40 MB more: the tool that strips their types stays in memory.
 */
export function toImageStart(checkout: string): ImageStart {
  if (!built.has(checkout)) build(checkout);
  built.add(checkout);
  const dockerfile = readDockerfile(checkout);
  return {
    args: readEntryPoint(checkout).map((arg) => arg.replace(/^\/app(?=\/)/, checkout)),
    env: Object.fromEntries(
      [...dockerfile.matchAll(/\b(MALLOC_\w+)=(\w+)/g)].map(([, name, value]) => [name, value]),
    ),
  };
}

/** The arguments of Node with which the image of a checkout starts, as its Dockerfile has them. */
export function readEntryPoint(checkout: string): readonly string[] {
  const [, entrypoint = '[]'] = /^ENTRYPOINT (.+)$/m.exec(readDockerfile(checkout)) ?? [];
  const [node, ...args]: readonly string[] = JSON.parse(entrypoint);
  if (node !== 'node') throw new Error(`the image of ${checkout} does not start Node`);
  return args;
}

function readDockerfile(checkout: string): string {
  return readFileSync(join(checkout, 'Dockerfile'), 'utf8');
}

function build(checkout: string): void {
  // An older checkout has no bundle.
  const [script = ''] = ['scripts/bundle.ts', 'scripts/build.ts'].filter((path) =>
    existsSync(join(checkout, path)),
  );
  const { status } = spawnSync(process.execPath, [script], { cwd: checkout, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${checkout} cannot be built`);
}
