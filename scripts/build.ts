import { spawnSync } from 'node:child_process';
import { chmod, cp, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';

/**
 * Builds dist/: the JavaScript of the published package, because Node strips no types in node_modules. Each TypeScript
 * file becomes one JavaScript file in the same folder. Other files are copied.
 */

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');

await rm(DIST, { recursive: true, force: true });

const tsc = join(ROOT, 'node_modules/.bin/tsc');
const { status } = spawnSync(tsc, ['--project', join(ROOT, 'tsconfig.build.json')], { stdio: 'inherit' });
if (status !== 0) process.exit(1);

for (const folder of ['src', 'otel']) {
  const isAsset = (path: string) => extname(path) !== '.ts' && basename(path) !== 'tsconfig.json';
  await cp(join(ROOT, folder), join(DIST, folder), { recursive: true, filter: isAsset });
}

// The nearest package.json defines `#otel/…` and the version. tsc rewrites `.ts` only in relative specifiers, so this
// mapping resolves a subpath import of a `.ts` file to the generated `.js` file.
const { name, version, type } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const manifest = { name, version, private: true, type, imports: { '#otel/*.ts': './otel/*.js' } };
await writeFile(join(DIST, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);

await chmod(join(DIST, 'src/main.js'), 0o755);
