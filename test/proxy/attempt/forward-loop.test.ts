import { describe, expect, onTestFinished, test } from 'vitest';
import type { Replica } from '#replicas';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { type ServerSide, startTcpServer, type TcpServer } from '#testkit/servers/tcp-server.ts';
import type { AttemptRequest } from '../../../src/proxy/attempt/attempt.ts';
import type { AttemptVariant } from '../../../src/proxy/attempt/attempts.ts';
import { type ForwardedAttempts, forward } from '../../../src/proxy/attempt/forward.ts';
import type { SendSettings } from '../../../src/proxy/attempt/send.ts';
import { openExchange, SETTINGS, toAttempt, untilAsked } from './one-request.ts';

const answer = (status: string, body = 'ok') =>
  `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const OK = answer('200 OK');
const LATER = answer('503 Later', 'no');
const RETRY: SendSettings = { ...SETTINGS, retry: { statuses: new Set([503]), attempts: 1 } };
/** Enough of a reading for an answer that is not relayed: something was inserted that must be undone. */
const ASKS_USAGE = { undo: { movedMember: null } } as unknown as AttemptRequest['reading'];

/** One request to the replicas `a`, `b`, …, which the test answers, and what its attempts are told. */
async function start(
  names: readonly string[],
  { refusing = [] as readonly string[], asksUsage = false } = {},
) {
  const servers = new Map<string, TcpServer>();
  for (const name of names) {
    const server = await startTcpServer();
    onTestFinished(() => server[Symbol.asyncDispose]());
    servers.set(name, server);
  }
  const urlOf = (name: string) => {
    const url = servers.get(name)?.url ?? '';
    // The server has this port, but not at this address.
    return refusing.includes(name) ? url.replace('127.0.0.1', '127.0.0.9') : url;
  };
  const pools = createPools(names.map((name) => toReplicaConfig(name, ['m'], { url: urlOf(name) })));
  onTestFinished(() => pools.pool.close());
  const opened = openExchange();
  const told: string[] = [];
  const variants: AttemptVariant[] = [];
  let widenings = 0;
  const attempts: ForwardedAttempts = {
    acquire(tried) {
      const acquired = pools.pool.acquire('m', tried);
      if (acquired === 'busy') throw new Error(acquired);
      return acquired;
    },
    hold: ({ replica }) => void told.push(`hold ${replica.name}`),
    begin(replica, variant) {
      variants.push({ ...variant });
      const reading = asksUsage && variant.withUsage ? ASKS_USAGE : null;
      return toAttempt(opened.exchange, replica, { ...variant, reading }).request;
    },
    widen: () => widenings-- > 0,
    withdraw: () => void told.push('withdraw'),
    fail: (replica, code, cause, statusCode) =>
      void told.push(
        [`fail ${replica.name} ${code}`, statusCode, cause === null ? undefined : 'cause'].join(' ').trim(),
      ),
    finish: () => void told.push('finish'),
  };
  const replicaOf = (name: string): Replica => {
    for (;;) {
      const lease = pools.pool.acquireAny(new Set());
      if (typeof lease === 'string') throw new Error(lease);
      lease[Symbol.dispose]();
      if (lease.replica.name === name) return lease.replica;
    }
  };
  return {
    pools,
    told,
    variants,
    ...opened,
    run: (settings: SendSettings = SETTINGS) => forward(opened.exchange, attempts, settings),
    mayWiden: (count: number) => {
      widenings = count;
    },
    async asked(name: string): Promise<ServerSide> {
      const side = await (servers.get(name) as TcpServer).next();
      await untilAsked(side);
      return side;
    },
    stateOf: (name: string) => pools.shared.reachability.stateOf(pools.registry.find(name)?.slot ?? -1),
    inflight: () => [...pools.registry.inflightByName().values()].reduce((sum, count) => sum + count, 0),
    replicaOf,
  };
}

describe('a request goes on to the next replica', () => {
  test('where one cannot be connected to, which is noted of it', async () => {
    const { run, told, asked, text, stateOf, inflight, variants, replicaOf, logged } = await startNamed({
      refusing: ['a'],
    });
    const done = run();
    (await asked('b')).write(OK);
    await done;
    expect(told).toEqual(['hold a', 'fail a not_connected  cause', 'hold b', 'finish']);
    expect(stateOf('a')).toMatchObject({ state: 'unreachable' });
    expect(inflight()).toBe(0);
    await text('\r\n\r\nok');
    expect(variants.map(({ mayRetryStatus }) => mayRetryStatus)).toEqual([false, false]);
    expect(replicaOf('b').refusesIncludeUsage).toBe(false);
    expect(logged).toEqual(expect.arrayContaining(['replica chosen', 'attempt ended']));
  });

  test('where one cannot be connected to, which is none of the retries that it may have', async () => {
    const { run, told, asked } = await startNamed({ names: ['a', 'b', 'c'], refusing: ['a'] });
    const done = run(RETRY);
    (await asked('b')).write(LATER);
    (await asked('c')).write(OK);
    await done;
    expect(told.filter((each) => each.startsWith('fail'))).toEqual([
      ...['fail a not_connected  cause', 'fail b status_retried 503'],
    ]);
  });

  test('where one answers a status that is retried, as often as it may be', async () => {
    const { run, told, asked, variants, text } = await startNamed();
    const done = run(RETRY);
    (await asked('a')).write(LATER);
    (await asked('b')).write(answer('503 Later', 'other'));
    await done;
    expect(told).toEqual(['hold a', 'fail a status_retried 503', 'hold b', 'finish']);
    expect(variants.map(({ mayRetryStatus }) => mayRetryStatus)).toEqual([true, false]);
    await text('\r\n\r\nother');
  });

  test('and its client gets the last of the answers where all of them were retried', async () => {
    const { run, told, asked, text, mayWiden } = await startNamed();
    // Asked once more where it may go to others from now on.
    mayWiden(1);
    const done = run({ ...SETTINGS, retry: { statuses: new Set([503]), attempts: 5 } });
    (await asked('a')).write(LATER);
    (await asked('b')).write(answer('503 Later', 'last'));
    await done;
    expect(told).toEqual(['hold a', 'fail a status_retried 503', 'hold b', 'fail b status_retried 503']);
    await text('\r\n\r\nlast');
  });

  test('where its engine loads its model, also if it was drained in the meantime', async () => {
    const { run, told, asked, pools, stateOf, text } = await startNamed();
    for (const name of ['a', 'b']) pools.registry.find(name)?.learn({ models: ['m'], engine: 'llamacpp' });
    pools.publish();
    const done = run();
    const body = '{"error":{"type":"unavailable_error","message":"Loading model"}}';
    const side = await asked('a');
    pools.setDrained('a', true);
    side.write(
      `HTTP/1.1 503 No\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const other = await asked('b');
    expect(stateOf('a')).toMatchObject({ state: 'loading' });
    pools.setDrained('a', false);
    // It is tried once, although it is there again.
    other.write(
      `HTTP/1.1 503 No\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await done;
    expect(told).toEqual(['hold a', 'fail a loading 503', 'hold b', 'fail b loading 503']);
    await text(body);
  });

  test('where one was drained before anything was sent, and may come back to it', async () => {
    const { run, told, pools, text } = await startNamed({ names: ['a'] });
    const done = run();
    pools.setDrained('a', true);
    await done;
    expect(told).toEqual(['hold a', 'withdraw']);
    await text('"all_replicas_drained"');

    const again = await startNamed();
    const repeated = again.run();
    again.pools.setDrained('a', true);
    const side = await again.asked('b');
    side.write(OK);
    await repeated;
    expect(again.told).toEqual(['hold a', 'withdraw', 'hold b', 'finish']);
  });
});

describe('a request is repeated at its replica', () => {
  test('on a new connection where a kept one was reset, and no more than once', async () => {
    const first = await startNamed({ names: ['a'] });
    const done = first.run();
    const side = await first.asked('a');
    side.write(OK);
    await done;
    // The same pool has a kept connection now.
    const { exchange, http } = openExchange();
    const told: string[] = [];
    const variants: AttemptVariant[] = [];
    const forwarded = forward(
      exchange,
      {
        acquire: () => first.pools.pool.acquire('m', new Set()) as never,
        hold: () => undefined,
        widen: () => false,
        withdraw: () => undefined,
        begin(replica, variant) {
          variants.push({ ...variant });
          return toAttempt(exchange, replica, variant).request;
        },
        fail: (_replica, code) => void told.push(code),
        finish: () => void told.push('finish'),
      },
      SETTINGS,
    );
    await untilAsked(side);
    side.socket.end();
    const fresh = await first.asked('a');
    fresh.socket.end();
    await forwarded;
    expect(told).toEqual(['reset_on_reuse', 'upstream_failed']);
    expect(variants.map(({ onFreshConnection }) => onFreshConnection)).toEqual([false, true]);
    expect(http.text()).toMatch(/^HTTP\/1\.1 502 /);
  });

  test.each([
    ['serves it then', OK, true],
    ['refuses that too', answer('400 No', 'stream_options'), false],
    ['redirects then', answer('300 Many', ''), false],
  ])('without our option where that is refused; it counts if the replica %s', async (_, second, isNoted) => {
    const { run, told, asked, variants, replicaOf } = await startNamed({ names: ['a'], asksUsage: true });
    const done = run();
    const side = await asked('a');
    side.write(answer('400 No', 'stream_options'));
    await side.untilReceived('\r\n\r\n');
    side.write(second);
    await done;
    expect(told).toEqual(['hold a', 'fail a usage_refused 400', 'finish']);
    expect(variants.map(({ withUsage }) => withUsage)).toEqual([true, false]);
    expect(replicaOf('a').refusesIncludeUsage).toBe(isNoted);
  });

  test('not with our option where it is known to refuse it', async () => {
    const { run, asked, variants, replicaOf } = await startNamed({ names: ['a'], asksUsage: true });
    replicaOf('a').noteUsageRefused();
    const done = run();
    (await asked('a')).write(answer('400 No', 'stream_options'));
    await done;
    expect(variants.map(({ withUsage }) => withUsage)).toEqual([false]);
    expect(replicaOf('a').refusesIncludeUsage).toBe(true);
  });
});

describe('a request fails', () => {
  test.each([
    ['at its time', 504, 'upstream_timeout'],
    ['because the replica closes', 502, 'upstream_failed'],
  ])('%s, and goes to no other replica', async (how, status, code) => {
    const { run, told, asked, http } = await startNamed();
    const done = run(how === 'at its time' ? { ...SETTINGS, firstByteMs: 20 } : SETTINGS);
    const side = await asked('a');
    if (how !== 'at its time') side.socket.end();
    await done;
    expect(told).toEqual(['hold a', expect.stringMatching(`^fail a ${code}`)]);
    expect(http.text()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*"${code}"`));
  });

  test('because no replica can be reached', async () => {
    const { run, told, http, logged } = await startNamed({ refusing: ['a', 'b'] });
    await run();
    expect(logged).toContain('no replica');
    expect(told).toEqual([
      ...['hold a', 'fail a not_connected  cause', 'hold b', 'fail b not_connected  cause'],
    ]);
    expect(http.text()).toContain('"no_replica_reachable"');
  });

  test('without an answer where its client has left', async () => {
    const { run, told, asked, exchange, written } = await startNamed();
    const done = run();
    const side = await asked('a');
    exchange.http.finish('closed', 1);
    await done;
    await side.untilClosed();
    expect([told, written.items]).toEqual([['hold a', 'finish'], []]);
  });
});

/** As `start`, with the replicas `a` and `b`, and a way to wait for what the client gets. */
async function startNamed({
  names = ['a', 'b'],
  ...options
}: { names?: readonly string[] } & Parameters<typeof start>[1] = {}) {
  const started = await start(names, options);
  const { written, http } = started;
  return { ...started, text: (end: string) => written.until(() => http.text().includes(end)) };
}
