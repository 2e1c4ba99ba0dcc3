import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { readSnippets } from '#testkit/docs-snippets.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const PAGE = join(import.meta.dirname, '../../../docs/guide.md');

/** The record of the guide's request. */
export const ofAcme: unknown = expect.objectContaining({
  tenant: 'acme',
  model: 'demo',
  stream: true,
  status: 200,
});

/** A gateway with the model of docs/guide.md, and a snippet of the page with its address in place of the page's. */
export async function startFor(heading: string, language: string) {
  const replica = await startSimulatedReplica({ models: ['demo'] });
  onTestFinished(() => replica[Symbol.asyncDispose]());
  const gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, models: ['demo'] }] });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const snippet = (await readSnippets(PAGE, language)).get(heading) ?? '';
  expect(snippet).toContain('http://127.0.0.1:8080');
  return { gateway, code: snippet.replaceAll('http://127.0.0.1:8080', gateway.url) };
}
