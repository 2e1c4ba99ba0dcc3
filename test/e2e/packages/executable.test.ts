import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCommand } from './installed-package.ts';
import { tryQuickstart, tryTwoWorkers } from './try-gateway.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');

describe('the single executable', () => {
  let folder: string;
  let gateway: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spangate-executable-test-'));
    gateway = join(folder, 'gateway');
    await run(process.execPath, [join(ROOT, 'scripts/executable.ts'), gateway]);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test('says its version, and the Node that it contains', async () => {
    const command = await createCommand(gateway, null);
    expect(await command.run('version')).toContain(`(node ${process.versions.node}, `);
  });

  test('starts without a word, with the code that was compiled for it', async () => {
    expect(await run(gateway, ['--version'])).toMatchObject({ stderr: '' });
  });

  test('runs the quickstart: a stream, its record, the dashboard', async () => {
    await tryQuickstart(await createCommand(gateway, null));
  });

  test('serves with two workers over a drain and a reload, and cuts nothing', async () => {
    await tryTwoWorkers(await createCommand(gateway, null), folder);
  });
});
