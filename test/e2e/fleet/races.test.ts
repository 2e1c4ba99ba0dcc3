import { describe, expect, test } from 'vitest';
import { chatTo, startFleet } from './start-fleet.ts';

/** The round-trip time of one gateway's link to the store. */
const LINK_MS = 472;

describe.concurrent('two gateways, one of them with a long link to the store', () => {
  test('the last of a drain, an undrain and a drain wins, although its gateway had not read the undrain', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    const { x } = fleet.replicas;
    await a.drain('x');
    await a.until('x', ({ safe_to_stop }) => safe_to_stop === true);
    a.link.delayBy(LINK_MS / 2);
    for (let repeated = 0; repeated < 2; repeated++) {
      const undrained = b.undrain('x', `?reason=back-${repeated}`);
      await b.gateway.untilLogged(`"reason":"back-${repeated}"`);
      await b.replica('x'); // the clock has advanced
      // gw-a has probably not read the undrain yet.
      expect(await a.drain('x')).toMatchObject({
        scope: 'fleet',
        overtaken: false,
        replica: { drained: true },
      });
      expect(await undrained).toMatchObject({ overtaken: true, replica: { drained: true } });
      await a.until('x', ({ safe_to_stop }) => safe_to_stop === true);
      const { length: before } = x.requests;
      await chatTo(a, 2);
      await chatTo(b, 2);
      expect(x.requests.length).toBe(before);
    }
  });

  test('a drain that a later undrain overtook says so, and reports the state of the replica', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    a.link.delayBy(LINK_MS / 2);
    const drained = a.drain('x');
    await a.until('x', ({ drained: isDrained }) => isDrained);
    const undrained = b.undrain('x');
    expect(await drained).toMatchObject({
      scope: 'fleet',
      overtaken: true,
      replica: { drained: false, safe_to_stop: false },
      warning: expect.stringContaining('A later undrain'),
    });
    expect(await undrained).toMatchObject({ scope: 'fleet', overtaken: false, replica: { drained: false } });
  });

  test('a drain is answered with "fleet" by a gateway whose sync takes longer than the propagation time', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    a.link.delayBy(LINK_MS / 2);
    expect(await a.drain('x')).toMatchObject({ scope: 'fleet', overtaken: false });
    expect(await b.replica('x')).toMatchObject({ drained: true });
  });
});

test.concurrent('an undrain while another gateway is cut off takes as long as its heartbeat may be valid, and no longer', async () => {
  await using fleet = await startFleet('gw-a', 'gw-b');
  const [a, b] = fleet.gateways;
  await a.drain('x');
  await a.until('x', ({ safe_to_stop }) => safe_to_stop === true);
  b.link.become('cut');
  const calledAtMs = performance.now();
  expect(await a.undrain('x')).toMatchObject({ scope: 'fleet', replica: { drained: false } });
  const tookMs = performance.now() - calledAtMs;
  expect(tookMs).toBeGreaterThan(6_200);
  expect(tookMs).toBeLessThan(8_000);
  // It is already undrained, so no gateway can rely on the drain.
  expect(await a.undrain('x')).toMatchObject({ replica: { drained: false } });
  expect(performance.now() - calledAtMs - tookMs).toBeLessThan(5_500);
});
