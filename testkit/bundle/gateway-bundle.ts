import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ENTRIES, ROOT } from '../../scripts/bundle/options.ts';

const FOLDER = join(ROOT, 'node_modules/.cache/gateway-bundle');
const SOURCES = ['{src,otel}/**/*', 'scripts/bundle.ts', 'scripts/bundle/*', 'package*.json'];
/** One that was not used for so long is removed. */
const UNUSED_MS = 86_400_000;

/**
 * Builds the bundle of the sources as they are, as the image has it, unless it is there. Returns what begins with which file:
 * URLs of sources and of the bundle. A gateway's process takes half the CPU time until it listens, and one with two workers
 * a third.
 */
export async function buildGatewayBundle(): Promise<Readonly<Record<string, string>>> {
  const folder = join(FOLDER, await hashSources());
  if (existsSync(folder)) await utimes(folder, new Date(), new Date());
  else await build(folder);
  return Object.fromEntries(
    Object.entries(ENTRIES).map(([name, source]) => [
      pathToFileURL(join(ROOT, source)).href,
      pathToFileURL(join(folder, `${name}.js`)).href,
    ]),
  );
}

async function build(folder: string): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  await removeUnused();
  // Another run may build the same.
  const own = `${folder}.${process.pid}`;
  await promisify(execFile)(process.execPath, [join(ROOT, 'scripts/bundle.ts'), own]);
  await rename(own, folder).catch(() => rm(own, { recursive: true }));
}

async function removeUnused(): Promise<void> {
  for (const name of await readdir(FOLDER)) {
    const { mtimeMs } = await stat(join(FOLDER, name));
    if (Date.now() - mtimeMs > UNUSED_MS) await rm(join(FOLDER, name), { recursive: true, force: true });
  }
}

/** What the sources are, by their names, sizes and times. */
async function hashSources(): Promise<string> {
  const hash = createHash('sha256');
  for (const path of SOURCES.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).toSorted()) {
    const { size, mtimeMs } = await stat(join(ROOT, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}
