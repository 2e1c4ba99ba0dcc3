import { expect, test } from 'vitest';
import { chatTo, startFleet } from './start-fleet.ts';

test('a replica that is drained in the fleet is a shadow of the one gateway that was asked, and of clients nowhere', async () => {
  await using fleet = await startFleet('gw-a', 'gw-b');
  const [first, second] = fleet.gateways;
  const { x, y } = fleet.replicas;
  await first.drain('y');
  await second.until('y', ({ drained }) => drained);

  const begun = await first.post('/admin/replicas/y/shadow?requests=100%25&for=5m');
  expect(begun.status).toBe(200);
  await chatTo(second, 5);
  expect(y.requests).toHaveLength(0);
  while (y.requests.length === 0) await chatTo(first, 1);
  await first.post('/admin/replicas/y/unshadow');

  expect((await first.replica('y')).drained).toBe(true);
  expect(await second.until('y', ({ inflight }) => inflight === 0)).toMatchObject({ drained: true });
  const served = [...first.gateway.records, ...second.gateway.records].map(({ replica }) => replica);
  expect(new Set(served)).toEqual(new Set(['x']));
  expect(x.requests.length).toBe(served.length);
});

test('a shadow that serves in the rest of the fleet is told with a warning', async () => {
  await using fleet = await startFleet('gw-a', 'gw-b');
  const [first, second] = fleet.gateways;
  const begun = await first.post('/admin/replicas/y/shadow?requests=100%25&for=5m');
  expect(((await begun.json()) as { readonly warning?: string }).warning).toBeTypeOf('string');

  await chatTo(second, 4);

  expect(new Set(second.gateway.records.map(({ replica }) => replica))).toEqual(new Set(['x', 'y']));
});
