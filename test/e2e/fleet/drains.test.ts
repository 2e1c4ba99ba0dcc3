import { describe, expect, test } from 'vitest';
import { createGate, type Gate } from '#testkit/gates.ts';
import { chatTo, type FleetGateway, startFleet, type TestFleet } from './start-fleet.ts';

/** Two requests of a gateway, one at each replica, that wait until `open`. When it is left they have been answered. */
async function holdAtX(
  { replicas }: TestFleet,
  { gateway }: FleetGateway,
): Promise<AsyncDisposable & Pick<Gate, 'open'>> {
  const gate = createGate();
  for (const replica of [replicas.x, replicas.y]) replica.answer(gate.script);
  const answers = [gateway.chat(), gateway.chat()];
  await replicas.x.nextRequest();
  return {
    open: gate.open,
    async [Symbol.asyncDispose]() {
      gate.open();
      for (const answer of answers) await (await answer).arrayBuffer();
    },
  };
}

describe.concurrent('two gateways that share a Redis server', () => {
  test('a drain on one applies on the other when it is answered, and an undrain lets both send again', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    const { x } = fleet.replicas;

    expect(await a.drain('x')).toMatchObject({ scope: 'fleet', unconfirmed: [] });
    const { length: before } = x.requests;
    await chatTo(a, 4);
    await chatTo(b, 4);
    expect(x.requests.length).toBe(before);
    expect(await b.replica('x')).toMatchObject({ drained: true, unconfirmed: [] });

    expect(await b.undrain('x')).toMatchObject({ scope: 'fleet', replica: { drained: false } });
    await a.until('x', ({ drained }) => !drained);
    await chatTo(a, 2);
    await chatTo(b, 2);
    expect(x.requests.length).toBe(before + 2);
  });

  test('a replica is safe to stop when the other gateway has nothing in flight on it, and not before', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    await using held = await holdAtX(fleet, b);

    await a.until('x', ({ inflight }) => inflight === 1);
    expect((await a.drain('x')).replica).toMatchObject({ drained: true, inflight: 1, safe_to_stop: false });
    const waiting = a.drain('x', '?wait=30s');
    held.open();
    expect((await waiting).replica).toMatchObject({ inflight: 0, safe_to_stop: true, unconfirmed: [] });
    expect((await b.replica('x')).inflight).toBe(0);
  });

  test('a replica that this gateway has removed is drained where another one still serves it', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    await using held = await holdAtX(fleet, b);
    await a.until('x', ({ inflight }) => inflight === 1);
    // As when the pod terminates, of which gw-b has not heard yet.
    a.gateway.writeConfig({ replicas: [fleet.replicas.y] });
    expect((await a.gateway.reload()).status).toBe(200);

    const shown = async () => (await (await a.gateway.admin('/admin/replicas/x')).json()) as object;
    expect(await shown()).toMatchObject({ replica: { absent: true, drained: false, safe_to_stop: false } });
    const drained = { name: 'x', absent: true, drained: true };
    expect((await a.drain('x')).replica).toMatchObject({ ...drained, inflight: 1, safe_to_stop: false });
    await b.until('x', (answer) => answer.drained);
    const waiting = a.drain('x', '?wait=30s');
    held.open();
    expect((await waiting).replica).toMatchObject({ ...drained, inflight: 0, safe_to_stop: true });
    expect(await shown()).toMatchObject({ replica: { ...drained, inflight: 0, safe_to_stop: true } });
    expect((await a.post('/admin/replicas/never-there/drain')).status).toBe(404);
  });

  test('a gateway with several workers can be a member', async () => {
    await using fleet = await startFleet('gw-a');
    const [a] = fleet.gateways;
    const { x, y } = fleet.replicas;
    const b = await fleet.start('gw-b', { workers: 2 });
    const gate = createGate();
    for (const replica of [x, y]) replica.answer(gate.script);
    const answers = Array.from({ length: 8 }, () => b.gateway.chat());
    const { length: sent } = await x.untilRequests(4);
    await a.drain('x');
    await a.until('x', ({ inflight, unconfirmed }) => inflight === sent && unconfirmed.length === 0);
    gate.open();
    await a.until('x', ({ safe_to_stop }) => safe_to_stop === true);
    for (const answer of answers) await (await answer).arrayBuffer();
    await chatTo(b, 4);
    expect(x.requests.length).toBe(sent);
  });

  test('no drain waits for a gateway that stopped in order, and a gateway that starts knows the drains', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    await b.gateway.close();
    expect(await a.drain('x')).toMatchObject({ scope: 'fleet', unconfirmed: [] });
    await a.until('x', (answer) => answer.safe_to_stop === true);
    expect((await a.gateways()).map(({ name }) => name)).toEqual(['gw-a']);

    const again = await fleet.start('gw-b');
    await chatTo(again, 4);
    expect(fleet.replicas.x.requests.length).toBe(0);
    expect((await a.gateways()).map(({ name, alive }) => [name, alive])).toEqual([
      ['gw-a', true],
      ['gw-b', true],
    ]);
    await again.until('x', (answer) => answer.safe_to_stop === true);
  });
});
