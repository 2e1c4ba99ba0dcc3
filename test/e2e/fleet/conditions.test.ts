import { expect, test } from 'vitest';
import { linesOf, untilCondition, untilOver } from '#testkit/conditions.ts';
import { startFleet } from './start-fleet.ts';

test('Redis that is away, and a drain that another gateway has not confirmed, are told until they are mended', async () => {
  await using fleet = await startFleet('gw-a', 'gw-b');
  const [a, b] = fleet.gateways;
  a.link.become('cut');
  expect(await untilCondition(a.gateway, 'redis_away')).toMatchObject({ severity: 'warning', subject: '' });
  a.link.become('whole');
  await untilOver(a.gateway, 'redis_away');
  expect(linesOf(a.gateway, 'redis_away')).toHaveLength(2);

  b.link.become('silent');
  await a.drain('x');
  expect(await untilCondition(a.gateway, 'drains_not_spread')).toMatchObject({
    subject: 'x',
    sentence: 'the drain of x is not confirmed by gw-b',
  });
  b.link.become('whole');
  await untilOver(a.gateway, 'drains_not_spread');
  expect(await (await a.gateway.admin('/admin/conditions')).text()).not.toContain('gateway_versions_differ');
});
