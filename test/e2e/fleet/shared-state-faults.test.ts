import { describe, expect, test } from 'vitest';
import { startFleet } from './start-fleet.ts';

describe.concurrent('a shared state', () => {
  test('that answers slowly still propagates drains', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    for (const { link } of [a, b]) link.delayBy(100);
    await a.drain('x');
    await b.until('x', ({ drained }) => drained);
    await a.until('x', ({ unconfirmed }) => unconfirmed.length === 0);
  });

  test('that comes back empty is filled again, and a gateway that is cut off is not forgotten', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b', 'gw-c');
    const [a, b, c] = fleet.gateways;
    await a.drain('x');
    c.link.become('cut');
    await fleet.redis.kill();
    expect(await b.drain('y')).toMatchObject({ scope: 'local', replica: { safe_to_stop: null } });
    await fleet.redis.start();

    await a.until('y', ({ drained }) => drained);
    await a.until('x', ({ unconfirmed }) => unconfirmed.join() === 'gw-c');
    expect((await a.drain('x', '?wait=7s')).replica.safe_to_stop).toBeNull();
    expect((await a.gateways()).map(({ name }) => name)).toEqual(['gw-a', 'gw-b', 'gw-c']);
    expect(await fleet.redis.command('hlen', '{spangate}:ledgers')).toBe('2');

    c.link.become('whole');
    for (const gateway of [a, b, c]) {
      for (const name of ['x', 'y']) await gateway.until(name, ({ safe_to_stop }) => safe_to_stop === true);
    }
  });
});
