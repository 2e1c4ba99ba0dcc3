import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { ENTRIES, findDashboardFiles, INPUT_OPTIONS, ROOT } from './bundle/options.ts';

/**
 * Builds the gateway as the image has it: `bundle.ts [FOLDER]`, by default build/bundle. All code with that of its packages is
 * in about a hundred files beside main.js: it starts in less time and takes less memory than as a file per module, with all that a
 * package has and the gateway does not use. Lines stay as they are, so that a stack can be read.
 */

const [given = 'build/bundle'] = process.argv.slice(2);
const folder = resolve(given);

await rm(folder, { recursive: true, force: true });

await using bundle = await rolldown({ ...INPUT_OPTIONS, input: { ...ENTRIES } });
const { output } = await bundle.generate({
  format: 'esm',
  comments: false,
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
});
const chunks = output.filter((file) => file.type === 'chunk');
await mkdir(folder, { recursive: true });
for (const { fileName, code } of chunks) await writeFile(join(folder, fileName), toAscii(code));
await chmod(join(folder, 'main.js'), 0o755);

const dashboardFiles = findDashboardFiles();
for (const [name, path] of dashboardFiles) {
  await mkdir(dirname(join(folder, 'page', name)), { recursive: true });
  await cp(path, join(folder, 'page', name));
}

const { name, version, license, type } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
await writeFile(
  join(folder, 'package.json'),
  `${JSON.stringify({ name, version, license, private: true, type }, null, 2)}\n`,
);

const sources = [...chunks.flatMap(({ moduleIds }) => moduleIds), ...dashboardFiles.values()];
await writeFile(join(folder, 'licenses.txt'), await readLicenses(sources));

/** One other character in a file would double what V8 keeps of it. They stand in strings and patterns alone. */
function toAscii(code: string): string {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The licences of the packages that these files are of, each under its name and version. */
async function readLicenses(paths: readonly string[]): Promise<string> {
  const folders = new Set(
    paths.flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  );
  const texts: string[] = [];
  for (const each of [...folders].toSorted()) {
    const manifest = JSON.parse(await readFile(join(each, 'package.json'), 'utf8'));
    const file = (await readdir(each)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? String(manifest.license) : await readFile(join(each, file), 'utf8');
    texts.push(`${manifest.name} ${manifest.version}\n\n${text.trim()}\n`);
  }
  return texts.join(`\n${'-'.repeat(80)}\n`);
}
