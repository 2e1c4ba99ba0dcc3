import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parseConfig, printConfig } from '#config';

const run = promisify(execFile);

test('the output of a command reaches a pipe whole, however long it is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'spangate-piped-'));
  const path = join(folder, 'gateway.yaml');
  const replicas = Array.from(
    { length: 750 },
    (_, index) => `- { name: r${index}, url: "http://r${index}" }\n`,
  );
  const text = `replicas:\n${replicas.join('')}`;
  await writeFile(path, text);
  const { stdout } = await run(process.execPath, ['src/main.ts', 'check', '-c', path], {
    maxBuffer: 2 ** 24,
  });
  expect(stdout.length).toBeGreaterThan(128 * 1024);
  expect(stdout).toBe(
    `# ${path} is valid. With all defaults:\n${printConfig(parseConfig(text, { path, env: {} }))}`,
  );
  await rm(folder, { recursive: true });
});
