import { spawnSync } from 'node:child_process';
import { chmod, cp, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';

/**
 * Builds dist/: the JavaScript that the published package runs, since Node strips no types below node_modules.
 * Each source file becomes one file in the same folder; other files are copied.
 */

const ROOT = join(import.meta.dirname, '..');
const DIST = join(ROOT, 'dist');

await rm(DIST, { recursive: true, force: true });

const tsc = join(ROOT, 'node_modules/.bin/tsc');
const { status } = spawnSync(tsc, ['--project', join(ROOT, 'tsconfig.build.json')], { stdio: 'inherit' });
if (status !== 0) process.exit(1);

for (const folder of ['src', 'otel']) {
  // The registries and the source of WebAssembly are read when code is generated.
  const isAsset = (path: string) =>
    !['.ts', '.yaml', '.as'].includes(extname(path)) && basename(path) !== 'tsconfig.json';
  await cp(join(ROOT, folder), join(DIST, folder), { recursive: true, filter: isAsset });
}

// The nearest package.json defines the doors and the version. tsc rewrites `.ts` only in relative specifiers, so each
// door leads to the `.js` built from its file.
const { name, version, type, imports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const doors = Object.entries<string>(imports).map(([door, file]) => [door, file.replace(/\.ts$/, '.js')]);
const manifest = { name, version, private: true, type, imports: Object.fromEntries(doors) };
await writeFile(join(DIST, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);

await chmod(join(DIST, 'src/main.js'), 0o755);
