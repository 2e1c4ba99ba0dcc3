import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readSnippets } from '#testkit/docs-snippets.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { requireCollector, SHIPPED_CONFIG, WITH_COLLECTOR } from '#testkit/servers/real-collector.ts';

const run = promisify(execFile);
const BACKENDS = join(import.meta.dirname, '../../docs/backends.md');

test(
  'the collector finds nothing wrong with what docs/backends.md tells to use',
  WITH_COLLECTOR,
  async (context) => {
    const binary = await requireCollector(context);
    const folder = await temporaryFolder();
    const snippets = new Map(await readSnippets(BACKENDS, 'yaml'));
    // These are the gateway's own configuration.
    for (const own of ['Dialects', 'One trace from the client to the engine'])
      expect(snippets.delete(own)).toBe(true);
    expect([...snippets.keys()]).toEqual(['Tempo', 'Langfuse', 'Phoenix', 'SigNoz', 'Honeycomb']);
    for (const [backend, snippet] of snippets) {
      const names = [...snippet.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = '']) => name);
      const path = join(folder, `${backend}.yaml`);
      await writeFile(path, snippet);
      await run(binary, ['validate', '--config', SHIPPED_CONFIG, '--config', path], {
        env: Object.fromEntries(names.map((name) => [name, 'http://127.0.0.1:1'])),
      });
    }
  },
);
