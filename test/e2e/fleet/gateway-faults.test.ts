import { describe, expect, test } from 'vitest';
import { chatTo, startFleet } from './start-fleet.ts';

describe.concurrent('a gateway that is cut off from the shared state', () => {
  test('drains locally, says so, and publishes the drain when it can', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    a.link.become('cut');
    expect(await a.drain('x')).toMatchObject({
      scope: 'local',
      unconfirmed: ['gw-b'],
      warning: expect.stringContaining('shared state'),
      replica: { drained: true, safe_to_stop: null },
    });
    await chatTo(a, 2);
    expect(fleet.replicas.x.requests.length).toBe(0);
    expect(await b.replica('x')).toMatchObject({ drained: false });

    a.link.become('whole');
    await b.until('x', ({ drained }) => drained);
    await a.until('x', (answer) => answer.safe_to_stop === true);
    await b.until('x', (answer) => answer.safe_to_stop === true);
  });

  test.each(['cut', 'silent'] as const)(
    'keeps sending (%s), and stays unconfirmed until it knows the drain',
    async (state) => {
      await using fleet = await startFleet('gw-a', 'gw-b');
      const [a, b] = fleet.gateways;
      const { x } = fleet.replicas;
      b.link.become(state);
      const { length: before } = x.requests;
      expect(await a.drain('x')).toMatchObject({ scope: 'fleet', unconfirmed: ['gw-b'] });
      await chatTo(b, 2);
      expect(x.requests.length).toBe(before + 1);
      // Longer than any heartbeat of gw-b is valid.
      const answer = await a.drain('x', '?wait=7s');
      expect(answer.replica).toMatchObject({ inflight: 0, safe_to_stop: null, unconfirmed: ['gw-b'] });
      expect(await a.gateways()).toMatchObject([
        { alive: true },
        { name: 'gw-b', alive: false, inflight: null },
      ]);

      b.link.become('whole');
      await a.until('x', ({ safe_to_stop }) => safe_to_stop === true);
      await chatTo(b, 2);
      expect(x.requests.length).toBe(before + 1);
    },
  );

  test('undrains when no gateway can still rely on the drain', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    const { x } = fleet.replicas;
    await a.drain('x');
    await a.until('x', ({ safe_to_stop }) => safe_to_stop === true);
    b.link.become('cut');
    let isOver = false;
    const undrained = b.undrain('x').finally(() => {
      isOver = true;
    });
    await chatTo(b, 2);
    expect(x.requests.length).toBe(0);
    // While gw-a reports safe_to_stop, gw-b must not send.
    await a.until('x', ({ safe_to_stop }) => safe_to_stop !== true);
    expect(isOver).toBe(false);
    expect(await undrained).toMatchObject({ scope: 'local', replica: { drained: false } });
    await chatTo(b, 2);
    expect(x.requests.length).toBe(1);
  });
});
