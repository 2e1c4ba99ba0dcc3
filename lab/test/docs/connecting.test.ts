import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { readSnippets } from '#testkit/docs-snippets.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { toVenv } from '../../bench/rivals/installed.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const PAGE = join(ROOT, 'docs/guide.md');

/** A gateway with the model of the page, and the page's snippet with its address in place of the page's. */
async function startFor(heading: string, language: string) {
  const replica = await startSimulatedReplica({ models: ['demo'] });
  onTestFinished(() => replica[Symbol.asyncDispose]());
  const gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, models: ['demo'] }] });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const snippet = (await readSnippets(PAGE, language)).get(heading) ?? '';
  expect(snippet).toContain('http://127.0.0.1:8080');
  return { gateway, code: snippet.replaceAll('http://127.0.0.1:8080', gateway.url) };
}

const ofAcme = expect.objectContaining({ tenant: 'acme', model: 'demo', stream: true, status: 200 });

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

test("docs/guide.md: the text of the SDK for Python's stream arrives", async ({ skip }) => {
  const python = await findPython();
  if (python === null)
    return skip("no Python has the package openai: npm run bench -- --install brings LiteLLM's");
  const { gateway, code } = await startFor('OpenAI SDK for Python', 'python');
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'client.py'), code);
  expect((await run(python, [join(folder, 'client.py')])).stdout.length).toBeGreaterThan(8);
  expect(await gateway.nextRecord()).toEqual(ofAcme);
});

/** A Python that has the SDK: the system's, or the one that the benchmarks installed for LiteLLM. */
async function findPython(): Promise<string | null> {
  for (const python of ['python3', join(toVenv('litellm'), 'bin/python')]) {
    // To import it takes a second.
    const script = 'import importlib.util, sys; sys.exit(importlib.util.find_spec("openai") is None)';
    const hasSdk = await run(python, ['-c', script]).then(
      () => true,
      () => false,
    );
    if (hasSdk) return python;
  }
  return null;
}
