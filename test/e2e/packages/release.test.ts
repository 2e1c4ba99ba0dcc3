import { execFile } from 'node:child_process';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');

/** A clone of this checkout's last commit, with the script as it is now, and a function that releases in it. */
async function cloneCheckout() {
  const folder = await temporaryFolder();
  const env = { ...process.env };
  for (const who of ['AUTHOR', 'COMMITTER']) {
    env[`GIT_${who}_NAME`] = 'tester';
    env[`GIT_${who}_EMAIL`] = 'tester@example.com';
  }
  const git = async (...args: string[]) => (await run('git', ['-C', folder, ...args], { env })).stdout.trim();
  await run('git', ['clone', '--quiet', '--no-hardlinks', ROOT, folder]);
  for (const path of ['scripts/release.ts', 'scripts/release']) {
    await cp(join(ROOT, path), join(folder, path), { recursive: true });
  }
  const changelog = await readFile(join(folder, 'CHANGELOG.md'), 'utf8');
  await writeFile(join(folder, 'CHANGELOG.md'), changelog.replace('\n## [', '\n## [Unreleased]\n\n## ['));
  await writeFile(join(folder, '.git/info/exclude'), 'node_modules\n');
  await git('add', '--all');
  await git('commit', '--quiet', '--allow-empty', '--message', 'The script');
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const release = async (...args: string[]) =>
    await run(process.execPath, ['scripts/release.ts', ...args], { cwd: folder, env });
  return { folder, git, release };
}

/** What a release consists of, by name. */
const FILES = [
  'chart/index.yaml',
  'chart/spangate-98.7.6.tgz',
  'gateway-98.7.6-linux-arm64.gz',
  'gateway-98.7.6-linux-x64.gz',
  'spangate-98.7.6-image-context.tar.gz',
  'spangate-98.7.6.cdx.json',
  'spangate-98.7.6.provenance.json',
  'spangate-98.7.6.tgz',
];

/** It copies the repository, builds and packs: a busy machine takes minutes. */
const SLOW = { timeout: 600_000 };

test(
  'a release has version, changelog, tag, package, bill of materials and checksums, and happens once',
  SLOW,
  async () => {
    const { folder, git, release } = await cloneCheckout();
    await release('98.7.6', '--skip-checks');
    const read = (file: string) => readFile(join(folder, file), 'utf8');
    expect(JSON.parse(await read('package.json')).version).toBe('98.7.6');
    expect(await read('CHANGELOG.md')).toMatch(/^## \[98\.7\.6\] - \d{4}-\d\d-\d\d$/m);
    expect(await git('describe', '--exact-match')).toBe('v98.7.6');
    expect(await git('status', '--porcelain')).toBe('');
    const { bomFormat, components } = JSON.parse(await read('build/release/spangate-98.7.6.cdx.json'));
    expect([bomFormat, components.some(({ name }: { name: string }) => name === 'pino')]).toEqual([
      'CycloneDX',
      true,
    ]);
    const { stdout } = await run('sha256sum', ['--check', 'SHA256SUMS'], {
      cwd: join(folder, 'build/release'),
    });
    expect(stdout.trim().split('\n')).toEqual(FILES.map((name) => `${name}: OK`));
    const { subject, predicate } = JSON.parse(await read('build/release/spangate-98.7.6.provenance.json'));
    expect(subject.map(({ name }: { name: string }) => name)).toEqual(
      FILES.filter((name) => !name.endsWith('provenance.json')),
    );
    expect(predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit).toBe(
      await git('rev-parse', 'HEAD'),
    );
    expect(await read('build/release/chart/index.yaml')).toContain('appVersion: 98.7.6');
    await expect(release('98.7.6', '--skip-checks')).rejects.toThrow('v98.7.6 is there already');
  },
);

test('a rehearsal makes the files, and neither a commit nor a tag', SLOW, async () => {
  const { folder, git, release } = await cloneCheckout();
  const before = await git('rev-parse', 'HEAD');
  await release('98.7.6', '--skip-checks', '--dry-run');
  expect(await git('rev-parse', 'HEAD')).toBe(before);
  expect(await git('tag')).toBe('');
  expect(await git('status', '--porcelain')).toBe('');
  await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: join(folder, 'build/release') });
});

test('a release refuses a wrong version, and changes that are not committed', SLOW, async () => {
  const { folder, git, release } = await cloneCheckout();
  await expect(release('1.2')).rejects.toThrow('usage: npm run release -- X.Y.Z');
  await writeFile(join(folder, 'left-over.txt'), 'not committed');
  await expect(release('98.7.6', '--skip-checks')).rejects.toThrow('changes that are not committed');
  expect(await git('tag')).toBe('');
});
