import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ENTRIES, ROOT } from './options.ts';

const FOLDER = join(ROOT, 'node_modules/.cache/gateway-bundle');
const SOURCES = ['{src,otel}/**/*', 'scripts/bundle.ts', 'scripts/bundle/*', 'package*.json'];
/** One that was not used for so long is removed. */
const UNUSED_MS = 86_400_000;

/*
 * Builds the bundle of the sources as they are, unless it is there: `cached.ts`. It prints JSON of what begins with which file:
 * from URLs of sources to those of the bundle.
 */

const folder = join(FOLDER, await hashSources());
if (existsSync(folder)) await utimes(folder, new Date(), new Date());
else await build(folder);
const toUrl = (...path: string[]) => pathToFileURL(join(...path)).href;
const started = Object.entries(ENTRIES).map(([name, source]) => [
  toUrl(ROOT, source),
  toUrl(folder, `${name}.js`),
]);
console.log(JSON.stringify(Object.fromEntries(started)));

async function build(built: string): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  await removeUnused();
  const own = `${built}.${process.pid}`;
  await promisify(execFile)(process.execPath, [join(ROOT, 'scripts/bundle.ts'), own]);
  await rename(own, built).catch(async (error: unknown) => {
    // Another run may have built the same.
    if (!existsSync(built)) throw error;
    await rm(own, { recursive: true });
  });
}

async function removeUnused(): Promise<void> {
  for (const name of await readdir(FOLDER)) {
    const path = join(FOLDER, name);
    // Another run may remove it, too.
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (Date.now() - mtimeMs > UNUSED_MS) await rm(path, { recursive: true, force: true });
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
