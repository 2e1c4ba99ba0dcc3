import { expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { refusedUrlBeside, startFakeReplica, startFakeReplicas } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** The names of what is wrong with replica `a`, by surface. */
async function surfacesOf(gateway: StartedGateway) {
  const listed = await (await gateway.admin('/admin/conditions')).json();
  const overview = await (await gateway.admin('/admin/overview')).json();
  const metrics = await (await gateway.admin('/metrics')).text();
  const ids = (answer: unknown) =>
    (answer as { conditions: { id: string; subject: string }[] }).conditions
      .filter(({ subject }) => subject === 'a')
      .map(({ id }) => id);
  return {
    api: ids(listed),
    overview: ids(overview),
    metrics: [...metrics.matchAll(/^gateway_condition\{id="(\w+)",severity="\w+",subject="a"\} 1$/gm)].map(
      ([, id]) => id,
    ),
  };
}

const lines = (gateway: StartedGateway) =>
  gateway.logLines
    .map((line) => JSON.parse(line))
    .filter(({ condition, replica }) => condition !== undefined && replica === 'a')
    .map(({ condition, msg }) => [condition, msg]);

test('a replica that does not answer is told by every surface until it answers', async () => {
  await using collector = await startFakeCollector();
  await using replicas = await startFakeReplicas('a', 'b');
  const [a, b] = replicas;
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: refusedUrlBeside(a) }, b],
    collector,
    config: {},
  });
  const spansOf = (name: string) =>
    collector.conditionSpans
      .filter((span) => span.name === name && span.attributes['gateway.condition_subject'] === 'a')
      .map(({ attributes }) => attributes['gateway.condition']);
  const all = (ids: string[]) => ({ api: ids, overview: ids, metrics: ids });
  await expect.poll(() => surfacesOf(gateway)).toEqual(all(['replica_unreachable']));
  expect(lines(gateway)).toEqual([['replica_unreachable', 'a does not answer: connection refused']]);
  await collector.waitFor(() => spansOf('condition_begins').length > 0);
  expect(spansOf('condition_begins')).toEqual(['replica_unreachable']);

  await using _returned = await startFakeReplica({
    name: 'a',
    address: '127.0.0.9',
    port: Number(new URL(a.url).port),
  });
  await expect.poll(() => surfacesOf(gateway)).toEqual(all([]));
  expect(lines(gateway)).toHaveLength(2);
  expect(lines(gateway).at(-1)).toEqual([
    'replica_unreachable',
    'over: a does not answer: connection refused',
  ]);
  await collector.waitFor(() => spansOf('condition_ends').length > 0);
  expect(spansOf('condition_ends')).toEqual(['replica_unreachable']);
});
