import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  listArtefacts,
  makeChart,
  makeExecutables,
  makeImageContext,
  makePackage,
  toChecksums,
  toList,
} from './release/artefacts.ts';
import { toProvenance } from './release/provenance.ts';

/*
 * `npm run release -- X.Y.Z`: checks everything, writes the version and the date of the changelog, commits and tags them,
 * and puts what is published into build/release: the package, its bill of materials, executables, the chart, the context
 * of the image, a statement of provenance, checksums. It pushes and publishes nothing: the last lines say how.
 *
 * `--dry-run` does the same in a clone: no file, commit or tag of this checkout changes, and build/release is the same.
 * `--skip-checks` is for its tests, and for a commit that CI has checked.
 */

const USAGE = 'usage: npm run release -- X.Y.Z [--dry-run] [--skip-checks]';
const FOLDER = 'build/release';

const run = (file: string, ...args: string[]) =>
  execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const show = (file: string, ...args: string[]) =>
  execFileSync(file, args, { stdio: ['ignore', 'inherit', 'inherit'] });

/** The changelog with the section of what is not released yet as that of this version; throws if it has none. */
function toReleasedChangelog(changelog: string, version: string, date: string): string {
  const heading = /^## \[(?:[\d.]+|Unreleased)\](?: - [\w-]+)?$/m;
  const [found = ''] = heading.exec(changelog) ?? [];
  const isOwn = found.startsWith(`## [${version}] - 2`);
  if (!isOwn && !/unreleased/i.test(found)) {
    throw new Error('CHANGELOG.md has no section of what is not released yet');
  }
  return changelog.replace(found, `## [${version}] - ${date}`);
}

async function release(version: string, isChecked: boolean): Promise<void> {
  const startedOn = new Date().toISOString();
  if (run('git', 'status', '--porcelain') !== '') throw new Error('there are changes that are not committed');
  if (run('git', 'tag', '--list', `v${version}`) !== '') throw new Error(`v${version} is there already`);
  const changelog = toReleasedChangelog(
    readFileSync('CHANGELOG.md', 'utf8'),
    version,
    startedOn.slice(0, 10),
  );
  if (isChecked) show('npm', 'run', '--silent', 'check');

  run('npm', 'version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts');
  writeFileSync('CHANGELOG.md', changelog);
  show('npm', 'run', '--silent', 'generate');
  run('git', 'commit', '--quiet', '--all', '--allow-empty', '--message', `Release ${version}`);
  run('git', 'tag', '--annotate', `v${version}`, '--message', `Spangate ${version}`);

  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  makePackage(FOLDER, version);
  await makeExecutables(FOLDER, version);
  makeChart(FOLDER, version);
  makeImageContext(FOLDER, version);
  const build = {
    version,
    startedOn,
    finishedOn: new Date().toISOString(),
    nodeVersion: process.versions.node,
    commit: run('git', 'rev-parse', 'HEAD').trim(),
    builder: process.env.RELEASE_BUILDER || 'local',
  };
  const provenance = toProvenance(build, await listArtefacts(FOLDER));
  writeFileSync(
    join(FOLDER, `spangate-${version}.provenance.json`),
    `${JSON.stringify(provenance, null, 2)}\n`,
  );
  const artefacts = await listArtefacts(FOLDER);
  writeFileSync(join(FOLDER, 'SHA256SUMS'), toChecksums(artefacts));
  process.stdout.write(toList(FOLDER, artefacts));
}

/** Releases in a clone of the last commit, and takes over what it has made. */
function rehearse(version: string, flags: readonly string[]): void {
  const clone = mkdtempSync(join(tmpdir(), 'spangate-rehearsal-'));
  try {
    run('git', 'clone', '--quiet', '--no-hardlinks', '.', clone);
    writeFileSync(join(clone, '.git/info/exclude'), 'node_modules\n');
    symlinkSync(join(process.cwd(), 'node_modules'), join(clone, 'node_modules'));
    execFileSync(process.execPath, ['scripts/release.ts', version, ...flags], {
      cwd: clone,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...toCommitter() },
    });
    rmSync(FOLDER, { recursive: true, force: true });
    cpSync(join(clone, FOLDER), FOLDER, { recursive: true });
  } finally {
    rmSync(clone, { recursive: true });
  }
}

/** A rehearsal needs no name: its commit is thrown away. */
function toCommitter(): Record<string, string> {
  const who = ['AUTHOR', 'COMMITTER'].flatMap((role) => [
    [`GIT_${role}_NAME`, 'rehearsal'],
    [`GIT_${role}_EMAIL`, 'rehearsal@localhost'],
  ]);
  return Object.fromEntries(who);
}

function toNextSteps(version: string): string {
  return `To publish:
  git push --follow-tags
  npm publish ${FOLDER}/spangate-${version}.tgz
  docker build -t REGISTRY/spangate:${version} - <${FOLDER}/spangate-${version}-image-context.tar.gz && docker push REGISTRY/spangate:${version}
  put the other files on the page of the release, and ${FOLDER}/chart where helm finds charts
`;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'skip-checks': { type: 'boolean' }, 'dry-run': { type: 'boolean' } },
});
const [version = ''] = positionals;
try {
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(USAGE);
  if (values['dry-run']) {
    rehearse(version, values['skip-checks'] === true ? ['--skip-checks'] : []);
    process.stdout.write('This was a rehearsal: there is no commit and no tag.\n');
  } else {
    await release(version, values['skip-checks'] !== true);
    process.stdout.write(toNextSteps(version));
  }
} catch (error) {
  process.stderr.write(`release: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
