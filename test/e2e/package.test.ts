import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
/** The tests' own Node first, because `#!/usr/bin/env node` of the bin and npm's scripts look it up. */
const ENV = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };

/** The first group of the first line that matches; rejects when the output ends without one. */
async function firstMatch(output: Readable, pattern: RegExp): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const [, group] = pattern.exec(line) ?? [];
    if (group !== undefined) return group;
  }
  throw new Error(`no line of the output matches ${pattern}`);
}

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

  /** The packed gateway with so many workers, as it writes its first lines. */
  function serve(workers: number) {
    return spawn(gateway, ['-config', join(ROOT, 'test/e2e/package.test.yaml')], {
      env: { ...ENV, STATE_DIR: join(folder, 'state'), WORKERS: String(workers) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  }

  test('its gateway command serves, the dashboard too, until SIGTERM, and then ends with nothing cut', async () => {
    const child = serve(1);
    const exited = once(child, 'exit');
    const addresses = await firstMatch(child.stdout, /"listen":"([^"]+","adminListen":"[^"]+)"/);
    const [listen, adminListen] = addresses.split('","adminListen":"');
    const health = await fetch(`http://${listen}/healthz`);
    expect(await health.text()).toBe('ok');
    const page = await (await fetch(`http://${adminListen}/`)).text();
    for (const [, path] of page.matchAll(/(?:href|src)="([^"]+)"/g)) {
      expect((await fetch(`http://${adminListen}/${path}`)).status, path).toBe(200);
    }
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });

  test.each([1, 2])('requests go by every thread it has, with %i workers', async (workers) => {
    const child = serve(workers);
    const exited = once(child, 'exit');
    const listen = await firstMatch(child.stdout, /"listen":"([^"]+)"/);
    // Large enough for a thread of its own; nobody listens where the replica should be.
    const body = JSON.stringify({ model: 'llama-3.3-70b', prompt: 'x'.repeat(100_000) });
    const answer = await fetch(`http://${listen}/v1/completions`, { method: 'POST', body });
    expect(answer.status).toBe(502);
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
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
        'deploy',
        'docs',
        'package.json',
      ].toSorted(),
    );
  });
});
