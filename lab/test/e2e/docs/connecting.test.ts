import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { toVenv } from '../../../bench/rivals/installed.ts';
import { ofAcme, startFor } from '../../docs/support.ts';

const run = promisify(execFile);

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
