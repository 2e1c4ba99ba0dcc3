import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  answerStream,
  chatChunk,
  DONE,
  type FakeReplica,
  hang,
  type ReplicaExchange,
  type Script,
  startFakeReplicas,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const STREAM = ['Content-Type', 'text/event-stream'];
const GOOD = answerStream([chatChunk('x'), chatChunk('y', 'stop'), usageChunk(1, 2), DONE]);

/** No stream is silent earlier. */
const FLOOR_MS = 5_000;

/** Streams that begin, and end when the test says so. */
function createStuck(before: readonly string[]) {
  const held: ReplicaExchange[] = [];
  const script: Script = async (exchange) => {
    await exchange.request.body;
    held.push(exchange);
    if (before.length === 0) return;
    await exchange.head(200, STREAM);
    await exchange.write(before.join(''));
  };
  return {
    script,
    held,
    async release() {
      for (const { head, end, request } of held.splice(0)) {
        if (request.isAborted) continue;
        if (before.length === 0) await head(200, STREAM);
        end(chatChunk('', 'stop') + DONE);
      }
    },
  };
}

const streamsOf = async (gateway: StartedGateway) =>
  (await gateway.replicas()).map(({ silent_streams }) => silent_streams);

/** So many streams end well, one after the other: enough to know what is usual. */
async function learn(gateway: StartedGateway, count = 20): Promise<void> {
  for (let each = 0; each < count; each++) await (await gateway.chat({ stream: true })).text();
}

const start = (replicas: readonly FakeReplica[], config: StartGatewayOptions['config'] = {}) =>
  startGateway({ replicas, config });

/** Begins so many streams, and does not wait for their ends. */
function begin(gateway: StartedGateway, count: number, members: object = { stream: true }) {
  const answers = Array.from({ length: count }, async () => (await gateway.chat(members)).text());
  return Promise.all(answers);
}

test.each([1, 2])(
  'with %i workers each replica shows its streams, and those that are silent for longer than is usual, until they go on',
  async (workers) => {
    await using replicas = await startFakeReplicas('a');
    const [a] = replicas;
    a.answer(GOOD);
    await using gateway = await start(replicas, { gateway: { workers } });
    await learn(gateway);
    const [begun, unbegun] = [createStuck([chatChunk('x')]), createStuck([])];
    a.answer(begun.script);
    const first = begin(gateway, 2);
    await a.untilRequests(22);
    a.answer(unbegun.script);
    const second = begin(gateway, 1);
    await a.untilRequests(23);
    a.answer(hang);
    // What is no stream does not count.
    const plain = new AbortController();
    const unanswered = gateway.chat({}, { signal: plain.signal }).catch(() => undefined);
    await a.untilRequests(24);

    const beganMs = performance.now();
    await expect.poll(() => streamsOf(gateway)).toMatchObject([{ count: 0, running: 3 }]);
    await expect
      .poll(() => streamsOf(gateway), { interval: 250 })
      .toEqual([{ count: 3, running: 3, oldest_ms: expect.any(Number) }]);
    expect(performance.now() - beganMs).toBeGreaterThan(FLOOR_MS - 1_000);
    const [shown] = await streamsOf(gateway);
    expect(shown?.oldest_ms).toBeGreaterThanOrEqual(FLOOR_MS);
    const metrics = await (await gateway.admin('/metrics')).text();
    expect(metrics).toMatch(/^gateway_replica_streams\{.*gateway_replica="a".*\} 3$/m);
    expect(metrics).toMatch(/^gateway_replica_silent_streams\{.*gateway_replica="a".*\} 3$/m);
    const [, oldest] = /^gateway_replica_silent_streams_oldest_seconds\{.*\} ([\d.]+)$/m.exec(metrics) ?? [];
    expect(Number(oldest)).toBeGreaterThanOrEqual(FLOOR_MS / 1_000);

    await begun.release();
    await unbegun.release();
    await Promise.all([first, second]);
    await expect.poll(() => streamsOf(gateway)).toEqual([{ count: 0, running: 0, oldest_ms: null }]);
    plain.abort();
    await unanswered;
  },
);

describe('a partial freeze', () => {
  const health = { passive: false, active: false, cool_down: '1s' };

  test.each([
    [1, { frozen_after: '1h' }],
    [2, { peers: {} }],
  ])(
    'with %i workers and %o: a replica whose streams stick is tried last within 15 s, and takes its turns again when that is over, although old streams still hang',
    async (workers, judges) => {
      await using replicas = await startFakeReplicas('a', 'b');
      const [a, b] = replicas;
      for (const replica of replicas) replica.answer(GOOD);
      await using gateway = await start(replicas, {
        gateway: { workers },
        health: { frozen_after: 'off', ...health, ...judges },
        timeouts: { silent: '40s' },
      });
      await learn(gateway, 30);
      const stuck = createStuck([chatChunk('x')]);
      let turn = 0;
      a.answer((exchange) => (turn++ % 2 === 0 ? stuck.script(exchange) : GOOD(exchange)));
      const [beganMs, ends] = [performance.now(), [] as Promise<unknown>[]];
      const healthOfA = async () => (await gateway.replicas())[0];
      /** Traffic goes on until `a` is so. */
      const until = async (wanted: 'ok' | 'failing') => {
        while ((await healthOfA())?.health !== wanted) {
          ends.push(begin(gateway, 2).catch(() => undefined));
          await new Promise((resolve) => setTimeout(resolve, 200));
        }
      };
      await until('failing');
      expect(performance.now() - beganMs).toBeLessThan(15_000);
      expect(await healthOfA()).toMatchObject({ health_reasons: ['frozen'] });
      expect((await gateway.replicas())[1]).toMatchObject({ health: 'ok' });
      const line = JSON.parse(await gateway.untilLogged('replica failing'));
      expect(line).toMatchObject({ replica: 'a', judge: 'frozen' });
      expect(line.reason).toMatch(/^\d+ of \d+ streams are silent$/);

      a.answer(GOOD);
      await until('ok');
      await gateway.untilLogged('replica on probation');
      const mendedMs = performance.now();
      while (performance.now() - mendedMs < 12_000) {
        ends.push(begin(gateway, 2).catch(() => undefined));
        await new Promise((resolve) => setTimeout(resolve, 500));
        expect(await healthOfA()).toMatchObject({ health: 'ok' });
      }
      expect((await streamsOf(gateway))[0]?.count).toBeGreaterThan(0);
      await gateway.untilLogged('replica ok');
      await stuck.release();
      await Promise.all(ends);
      expect(b.requests.length).toBeGreaterThan(0);
    },
  );
});

describe('timeouts.silent', () => {
  const clients = [{ name: 'a', key_sha256: createHash('sha256').update('key').digest('hex') }];
  const tenants = { clients, tenant_limits: { default: { max_inflight: 1 } } };
  const asTenant = { headers: { 'x-api-key': 'key' } };

  test.each([1, 2])(
    'with %i workers ends a stream that is silent after its first byte with an error event, and gives its tenant the place back',
    async (workers) => {
      await using replicas = await startFakeReplicas('a');
      const [a] = replicas;
      const stuck = createStuck([chatChunk('x')]);
      a.answer(stuck.script);
      const config = { gateway: { workers }, ...tenants, timeouts: { silent: '2s' } };
      await using gateway = await start(replicas, config);
      const stream = await gateway.chat({ stream: true }, asTenant);
      expect((await gateway.chat({}, asTenant)).status).toBe(429);
      const text = await stream.text();
      expect(text).toMatch(/^data: \{.*"x".*\n\ndata: \{"error":\{.*"code":"upstream_timeout"/s);
      a.answer(GOOD);
      await expect.poll(async () => (await gateway.chat({ stream: true }, asTenant)).status).toBe(200);
      const records = await gateway.waitForRecords(3);
      expect(records.find(({ status, truncated }) => status === 200 && truncated)).toMatchObject({
        status: 200,
        error_type: 'upstream_timeout',
        truncated: true,
        stream: true,
      });
    },
  );

  test('leaves a stream alone that has no first byte yet, and an answer that is no stream', async () => {
    await using replicas = await startFakeReplicas('a');
    const [a] = replicas;
    a.answer(async ({ request, head, write, end }) => {
      const isStream = (await request.body).includes('"stream":true');
      await head(200, isStream ? STREAM : ['Content-Type', 'application/json']);
      if (!isStream) await write('{');
      await new Promise((resolve) => setTimeout(resolve, 400));
      end(isStream ? chatChunk('x') + chatChunk('', 'stop') + DONE : '}');
    });
    await using gateway = await start(replicas, { timeouts: { silent: '100ms' } });
    expect(await (await gateway.chat({ stream: true })).text()).toContain('[DONE]');
    expect(await (await gateway.chat()).text()).toBe('{}');
  });

  test('is `idle` unless it is set, and can be set by a reload', async () => {
    await using replicas = await startFakeReplicas('a');
    const [a] = replicas;
    const stuck = createStuck([chatChunk('x')]);
    a.answer(stuck.script);
    await using gateway = await start(replicas, { timeouts: { idle: '200ms' } });
    expect(await (await gateway.chat({ stream: true })).text()).toContain('upstream_timeout');
    gateway.writeConfig({ config: { timeouts: { silent: '2s' } } });
    expect((await gateway.reload()).status).toBe(200);
    expect(await (await gateway.chat({ stream: true })).text()).toContain('upstream_timeout');
  });
});
