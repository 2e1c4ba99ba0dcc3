import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { renderJsonSchema, renderReference } from '../../scripts/generate/config-docs.ts';
import { parseConfig } from '../../src/config/load.ts';

const read = (path: string) => readFile(new URL(`../../docs/${path}`, import.meta.url), 'utf8');

it('the configuration reference and the JSON Schema are up to date', async () => {
  const advice = 'run node scripts/generate/config-docs.ts';
  expect(await read('configuration.md'), advice).toBe(renderReference());
  expect(await read('config.schema.json'), advice).toBe(renderJsonSchema());
});

it('the example of the reference is a valid configuration', () => {
  const example = /```yaml\n(.*?)```/s.exec(renderReference())?.[1] ?? '';
  const config = parseConfig(example, { path: 'gateway.yaml', env: { VLLM_KEY: 'k' } });
  expect(config.replicas.map(({ name }) => name)).toEqual(['vllm-a', 'vllm-b']);
});
