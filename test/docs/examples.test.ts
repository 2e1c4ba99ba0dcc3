import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '#config';
import { readAllSnippets } from '#testkit/docs-snippets.ts';

const ROOT = join(import.meta.dirname, '../..');
const ENV = { VLLM_KEY: 'a-key', GATEWAY_NAME: 'gateway-1' };

/** The first configurations with replicas in a page: as many as there are to begin with. */
async function configsIn(page: string, count: number): Promise<readonly string[]> {
  const snippets = await readAllSnippets(join(ROOT, page));
  const configs = snippets.filter(({ code, language }) => language === 'yaml' && /^replicas:/m.test(code));
  return configs.slice(0, count).map(({ code }) => code);
}

/*
 * Other snippets of the docs show one key. test/deploy/chart/chart.test.ts has the chart, test/cli/serve/quickstart.test.ts
 * what `npm start` saves.
 */
describe('a configuration that is there to be copied has health checks on', () => {
  test.each([
    ['docs/guide.md', 1],
    ['docs/configuration.md', 1],
    ['docs/comparison.md', 4],
  ])('%s', async (page, count) => {
    const configs = await configsIn(page, count);
    expect(configs).toHaveLength(count);
    for (const text of configs) expectChecks(text);
  });

  test('docker-compose.yml', async () => {
    const { configs } = parse(await readFile(join(ROOT, 'docker-compose.yml'), 'utf8')) as {
      readonly configs: Readonly<Record<string, { readonly content: string }>>;
    };
    expect(Object.keys(configs)).toEqual(['gateway.yaml', 'fleet.yaml']);
    for (const { content } of Object.values(configs)) expectChecks(content.replaceAll('$$', '$'));
  });
});

function expectChecks(text: string): void {
  const { health } = parseConfig(text, { path: 'gateway.yaml', env: ENV });
  expect(health).toMatchObject({ passive: true, active: true });
}
