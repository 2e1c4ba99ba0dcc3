import { expect, test } from 'vitest';
import { startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import type { StartedGateway } from '#testkit/start-gateway.ts';
import { startPods, startWith } from './pods.ts';

const ask = async (gateway: StartedGateway, candidate: string, baseline: string) => {
  const query = new URLSearchParams({ candidate, baseline });
  const response = await gateway.admin(`/admin/verdict?${query}`);
  return { status: response.status, ...((await response.json()) as object) };
};

test('a verdict compares pods by their labels, of which the gateway reads the metadata alone', async () => {
  const { pod, ports } = await startPods(3);
  await using api = await startFakeApiServer();
  const labelled = (index: number, version: string) => pod(index, { labels: { app: 'vllm', version } });
  api.put({ name: 's', ports, pods: [labelled(0, 'v1'), labelled(1, 'v1'), labelled(2, 'v2')] });
  await using gateway = await startWith(api);
  const answer = await ask(gateway, 'pod.label/app=vllm,version=v2', 'pod.label/version=v1');
  expect(answer).toMatchObject({ status: 200, candidate: ['vllm-2'], baseline: ['vllm-0', 'vllm-1'] });
  const lists = api.calls.filter(({ path }) => path === '/api/v1/namespaces/llm/pods');
  expect(lists.map(({ search }) => search.get('labelSelector'))).toEqual([
    'app=vllm,version=v2',
    'version=v1',
  ]);
  for (const { accept } of lists) expect(accept).toContain('as=PartialObjectMetadataList');

  expect(await ask(gateway, 'pod.label/version=v3', 'pod.label/version=v1')).toMatchObject({
    status: 404,
    error: { code: 'selector_matches_nothing', param: 'candidate' },
  });
});

test('an API server that does not list pods is named, with the right that is needed', async () => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  const answers = [
    ['403', (status: number) => status, 'resources [pods], verbs [list]'],
    ['200', () => 200, 'malformed_answer'],
  ] as const;
  for (const [index, [status, toStatus, part]] of answers.entries()) {
    api.answer('pods', (response) => {
      response.writeHead(toStatus(Number(status)), { 'Content-Type': 'application/json' }).end('{"items":7}');
    });
    expect(await ask(gateway, `pod.label/n=${index}`, 'vllm-0')).toMatchObject({
      status: 503,
      error: { code: 'pods_not_readable', message: expect.stringContaining(part) },
    });
  }
});
