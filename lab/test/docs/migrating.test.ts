import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseConfig } from '#config';
import { readAllSnippets } from '#testkit/docs-snippets.ts';

const PAGE = join(import.meta.dirname, '../../../docs/comparison.md');

test('docs/comparison.md: each program has a configuration of ours, with the replicas of theirs', async () => {
  const snippets = (await readAllSnippets(PAGE)).filter(({ code }) => /^replicas:/m.test(code));
  const configs = snippets.map(({ heading, code }) => {
    const { replicas } = parseConfig(code, { path: 'gateway.yaml', env: {} });
    return [heading, replicas.flatMap(({ url }) => (url === null ? [] : [new URL(url).host]))];
  });
  const both = ['10.0.0.11:8000', '10.0.0.12:8000'];
  expect(configs).toEqual([
    ['From LiteLLM', both],
    ['From nginx', both],
    ['From vllm-router', both],
    ['From production-stack', []], // behind a DNS name
  ]);
});
