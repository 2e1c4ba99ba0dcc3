import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/*
 * `npm run release -- X.Y.Z`: checks everything, writes the version and the section of the changelog, commits and tags
 * them, and puts the package, its bill of materials (CycloneDX) and their checksums into build/release. It pushes and
 * publishes nothing: the last lines say how. `--skip-checks` is for its test.
 */

const USAGE = 'usage: npm run release -- X.Y.Z [--skip-checks]';
const FOLDER = 'build/release';

const run = (file: string, ...args: string[]) =>
  execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const show = (file: string, ...args: string[]) =>
  execFileSync(file, args, { stdio: ['ignore', 'inherit', 'inherit'] });

/** The changelog with the section of what is not released yet as that of this version; throws if it has none. */
function toReleasedChangelog(changelog: string, version: string, date: string): string {
  const heading = /^## \[(?:[\d.]+|Unreleased)\](?: - unreleased)?$/m;
  const [found = ''] = heading.exec(changelog) ?? [];
  if (!/unreleased/i.test(found)) throw new Error('CHANGELOG.md has no section of what is not released yet');
  return changelog.replace(found, `## [${version}] - ${date}`);
}

function release(version: string, isChecked: boolean): void {
  if (run('git', 'status', '--porcelain') !== '') throw new Error('there are changes that are not committed');
  if (run('git', 'tag', '--list', `v${version}`) !== '') throw new Error(`v${version} is there already`);
  const changelog = toReleasedChangelog(
    readFileSync('CHANGELOG.md', 'utf8'),
    version,
    new Date().toISOString().slice(0, 10),
  );
  if (isChecked) show('npm', 'run', '--silent', 'check');

  run('npm', 'version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts');
  writeFileSync('CHANGELOG.md', changelog);
  show('npm', 'run', '--silent', 'generate');
  run('git', 'commit', '--quiet', '--all', '--message', `Release ${version}`);
  run('git', 'tag', '--annotate', `v${version}`, '--message', `Spangate ${version}`);

  mkdirSync(FOLDER, { recursive: true });
  const [{ filename }] = JSON.parse(run('npm', 'pack', '--json', '--pack-destination', FOLDER)) as [
    { filename: string },
  ];
  const bill = `spangate-${version}.cdx.json`;
  writeFileSync(
    join(FOLDER, bill),
    run('npm', 'sbom', '--package-lock-only', '--omit', 'dev', '--sbom-format', 'cyclonedx'),
  );
  const sums = [filename, bill].map((name) => {
    const sum = createHash('sha256')
      .update(readFileSync(join(FOLDER, name)))
      .digest('hex');
    return `${sum}  ${name}\n`;
  });
  writeFileSync(join(FOLDER, 'SHA256SUMS'), sums.join(''));
  process.stdout.write(`${FOLDER}: ${filename}, ${bill}, SHA256SUMS\n`);
  process.stdout.write(`To publish: git push --follow-tags && npm publish ${FOLDER}/${filename}\n`);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'skip-checks': { type: 'boolean' } },
});
const [version = ''] = positionals;
try {
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(USAGE);
  release(version, values['skip-checks'] !== true);
} catch (error) {
  process.stderr.write(`release: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
