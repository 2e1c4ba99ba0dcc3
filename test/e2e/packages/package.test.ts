import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCommand, findOldestNode, installGlobally, packPackage } from './installed-package.ts';
import { tryQuickstart, tryTwoWorkers } from './try-gateway.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');

let folder: string;
let tarball: string;
beforeAll(async () => {
  ({ folder, tarball } = await packPackage());
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the packed package', () => {
  test('is smaller than 1.3 MB, and carries neither pictures nor sources nor tests', async () => {
    expect((await stat(tarball)).size).toBeLessThan(1_300_000);
    const files = (await run('tar', ['-tzf', tarball])).stdout.trim().split('\n');
    expect(files).toContain('package/dist/src/main.js');
    expect(files.filter((file) => /\.(?:png|ts)$|\/(?:test|lab)\//.test(file))).toEqual([]);
    expect(new Set(files.map((file) => file.split('/')[1]))).toEqual(
      new Set([
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'collector-config.yaml',
        'dist',
        'deploy',
        'docs',
        'package.json',
        'sbom.cdx.json',
      ]),
    );
  });
});

describe.each([
  ['the Node of the project', async () => process.execPath],
  ['the oldest Node that it allows', findOldestNode],
])('the package, installed globally under %s', (_name, findNode) => {
  let gateway: string;
  let node: string;
  let nodeFolder: string;
  beforeAll(async () => {
    node = await findNode();
    nodeFolder = dirname(node);
    gateway = await installGlobally(tarball, node);
  });

  test('says its version, and runs on that Node', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const command = await createCommand(gateway, nodeFolder);
    const nodeVersion = (await run(node, ['--version'])).stdout.trim().slice(1);
    expect(await command.run('version')).toContain(`spangate ${version} (node ${nodeVersion}, `);
  });

  test('runs the quickstart: a stream, its record, the dashboard', async () => {
    await tryQuickstart(await createCommand(gateway, nodeFolder));
  });

  test('serves with two workers over a drain and a reload, and cuts nothing', async () => {
    const command = await createCommand(gateway, nodeFolder);
    await tryTwoWorkers(command, await mkdtemp(join(folder, 'try-')));
  });
});
