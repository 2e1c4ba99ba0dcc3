import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import {
  answerJson,
  answerStream,
  chatChunk,
  DONE,
  type FakeReplica,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

/*
 * Whole gateways compare replicas whose failures cannot be missed: what takes many requests is in
 * test/replicas/health/peer-watch.test.ts, and real processes are in `npm run lab -- peers`.
 */

/** No other judge of health. */
const PEERS_ALONE = { passive: false, active: false, frozen_after: 'off' };
const peers = { cool_down: '300ms', ramp: '300ms' };

const answerWith = (replica: FakeReplica, status: number) => replica.answer(answerJson({}, { status }));

/** Sends a request, and waits for its record. What is waited for takes seconds, so that thirty requests in each will do. */
async function ask(gateway: StartedGateway, members = {}): Promise<void> {
  const before = gateway.records.length;
  await (await gateway.chat(members, { headers: { Connection: 'close' } })).arrayBuffer();
  await gateway.waitForRecords(before + 1);
  await setTimeout(25);
}

/** Sends requests until the health of `a` is this. */
async function until(gateway: StartedGateway, health: string | null, members = {}): Promise<void> {
  while ((await gateway.replicas())[0]?.health !== health)
    for (let count = 0; count < 3; count++) await ask(gateway, members);
}

const linesOf = (gateway: StartedGateway) =>
  gateway.logLines
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg.startsWith('replica '))
    .map(({ msg, judge }) => `${msg} (${judge})`);

let collector: FakeCollector;
beforeEach(async () => {
  collector = await startFakeCollector();
});
afterEach(() => collector[Symbol.asyncDispose]());

test.each([1, 2])(
  'health.peers, switched on by a reload with %i workers: a replica that fails is tried last, comes back on probation, and is ok when it is mended',
  async (workers) => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    const gatewayKeys = { gateway: { workers } };
    await using gateway = await startGateway({ replicas, collector, config: gatewayKeys });
    answerWith(a, 500);
    for (let count = 0; count < 20; count++) await ask(gateway);
    expect((await gateway.replicas()).map(({ health }) => health)).toEqual([null, null]);

    gateway.writeConfig({ config: { ...gatewayKeys, health: { ...PEERS_ALONE, peers } } });
    expect((await gateway.reload()).status).toBe(200);
    await until(gateway, 'failing');
    expect((await gateway.replicas())[0]?.health_reasons).toEqual(['errors']);
    answerWith(a, 200);
    await gateway.untilLogged('replica on probation');
    while (!gateway.logLines.some((line) => line.includes('replica ok'))) await ask(gateway);

    expect((await gateway.replicas())[0]).toMatchObject({ health: 'ok', health_reasons: [], ramp: null });
    // On a busy machine it may be on probation, and fail again, before it is mended.
    const { length } = linesOf(gateway);
    expect(linesOf(gateway).slice(-3)).toEqual([
      'replica failing: tried last (errors)',
      'replica on probation: its share of turns grows (errors)',
      'replica ok: no longer tried last (errors)',
    ]);
    const spansOf = () => collector.spans.filter(({ name }) => name.startsWith('replica_'));
    await collector.waitFor(() => spansOf().length === length);
    const names = spansOf().map(({ name }) => name);
    expect(names.slice(-3)).toEqual(['replica_failing', 'replica_probation', 'replica_ok']);
    expect(spansOf()[0]?.attributes).toMatchObject({
      'gateway.replica': 'a',
      'gateway.judge': 'errors',
      'gateway.verdict': 'failing',
      'gateway.reason': expect.stringMatching(/^100 % of attempts fail \(peers 0 %\) \(\d+ requests\)$/),
    });

    gateway.writeConfig({ config: gatewayKeys });
    expect((await gateway.reload()).status).toBe(200);
    expect((await gateway.replicas()).map(({ health }) => health)).toEqual([null, null]);
  },
);

describe('health.peers', () => {
  test('sees failures that `retry` hides from clients', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    answerWith(a, 503);
    await using gateway = await startGateway({
      replicas,
      config: {
        health: { ...PEERS_ALONE, peers: { ...peers, cool_down: '1h' } },
        retry: { statuses: [503] },
      },
    });
    await until(gateway, 'failing');
    expect(gateway.records.every(({ status }) => status === 200)).toBe(true);
    expect(await turnsOf(gateway, 3)).toEqual(['b', 'b', 'b']);
  });

  test('finds a replica that fails streams before they begin', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    answerWith(a, 500);
    b.answer(answerStream([chatChunk('Hi') + chatChunk('', 'stop') + DONE]));
    await using gateway = await startGateway({
      replicas,
      config: { health: { peers: { ...peers, cool_down: '1h' } } },
    });
    await until(gateway, 'failing', { stream: true });
    expect((await gateway.replicas())[0]?.health_reasons).toEqual(['errors']);
  });

  test('never takes the last replica, and a drained one stays drained', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    answerWith(a, 500);
    const config = { health: { ...PEERS_ALONE, peers: { ...peers, cool_down: '1s' } } };
    await using gateway = await startGateway({ replicas, config });
    await until(gateway, 'failing');
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
    const looksLater = gateway.records.length + 60;
    while (gateway.records.length < looksLater) await ask(gateway);

    expect((await gateway.replicas())[0]).toMatchObject({ drained: true, health: null, ramp: null });
    expect(linesOf(gateway)).toEqual(['replica failing: tried last (errors)']);
    expect(await turnsOf(gateway, 3)).toEqual(['b', 'b', 'b']);
  });
});
