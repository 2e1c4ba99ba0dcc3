import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
/** The tests' own Node first, because `#!/usr/bin/env node` of the bin and npm's scripts look it up. */
const ENV = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };

describe('the packed package, installed elsewhere', () => {
  let folder: string;
  /** The bin as npm links it into node_modules/.bin. */
  let gateway: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spangate-package-'));
    await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT, env: ENV });
    const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? 'no tarball';
    await run('tar', ['-xzf', join(folder, tarball), '-C', folder]);

    const modules = join(folder, 'node_modules');
    await mkdir(join(modules, '.bin'), { recursive: true });
    await rename(join(folder, 'package'), join(modules, 'spangate'));
    const manifest = JSON.parse(await readFile(join(modules, 'spangate/package.json'), 'utf8'));
    for (const dependency of Object.keys(manifest.dependencies)) {
      await mkdir(dirname(join(modules, dependency)), { recursive: true });
      await symlink(join(ROOT, 'node_modules', dependency), join(modules, dependency));
    }
    gateway = join(modules, '.bin/gateway');
    await symlink(join('../spangate', manifest.bin.gateway), gateway);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  test('its gateway command says its version', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const { stdout } = await run(gateway, ['--version'], { cwd: folder, env: ENV });
    expect(stdout).toContain(version);
  });

  test('its modules all load: a config is checked with the whole gateway behind it', async () => {
    const config = join(ROOT, 'test/e2e/package.test.yaml');
    const { stdout } = await run(gateway, ['check', '-config', config], { cwd: folder, env: ENV });
    expect(stdout).toContain('vllm-a');
  });

  test('it carries what its manifest promises, and neither sources nor tests', async () => {
    const files = await readdir(join(folder, 'node_modules/spangate'));
    expect(files.toSorted()).toEqual(
      [
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'collector-config.yaml',
        'dist',
        'docs',
        'package.json',
      ].toSorted(),
    );
  });
});
