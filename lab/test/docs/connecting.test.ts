import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { ofAcme, startFor } from './support.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');

test("docs/guide.md: curl's stream is recorded with its tenant", async () => {
  const { gateway, code } = await startFor('curl', 'sh');
  const { stdout } = await run('bash', ['-c', code]);
  expect(stdout).toMatch(/data: \[DONE\]\n\n$/);
  expect(await gateway.nextRecord()).toEqual(ofAcme);
});

test("docs/guide.md: the text of the SDK for JavaScript's stream arrives", async () => {
  const { gateway, code } = await startFor('OpenAI SDK for JavaScript', 'js');
  const file = join(ROOT, `node_modules/.cache/connecting-${process.pid}.mjs`); // from there it finds the SDK
  await writeFile(file, code);
  onTestFinished(() => rm(file));
  expect((await run(process.execPath, [file])).stdout.length).toBeGreaterThan(8);
  expect(await gateway.nextRecord()).toEqual(ofAcme);
});
