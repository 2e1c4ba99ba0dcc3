import { describe, expect, onTestFinished, test } from 'vitest';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { startTcpServer } from '#testkit/servers/tcp-server.ts';
import { DeadlineClock } from '#wire';
import { SharedReads } from '#wire/upstream';
import { Fingerprint, Replica } from '../../../src/replicas/data/replica.ts';
import { open, sendOn } from '../../wire/upstream/collect-response.ts';

const TIMEOUTS = { connectMs: 1_000, upstreamKeepAliveMs: 4_000, nameTtlMs: 10_000 };
const AT = '2026-01-01T00:00:00.000Z';
const REFUSED = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });

/** One replica of a thread, with what it decides about its health. Two refusals in a row are a failure. */
function createReplica(members: Parameters<typeof toReplicaConfig>[2] = {}) {
  const pools = createPools([toReplicaConfig('a', ['m'], members)]);
  const { registry, shared } = pools;
  shared.health.configure({
    passive: true,
    active: false,
    failures: 2,
    coolDownMs: 0,
    frozenAfterMs: null,
    peers: null,
  });
  const [snapshot] = registry.nextSnapshot().replicas;
  if (snapshot === undefined) throw new Error('no replica');
  const decisions: unknown[] = [];
  const replica = new Replica(snapshot, TIMEOUTS, {
    shared,
    worker: 0,
    clock: new DeadlineClock(500),
    sharedReads: new SharedReads(),
    onHealth: (decision) => decisions.push(decision),
    onDefect: (error) => decisions.push(error),
  });
  onTestFinished(() => replica.upstream.destroy());
  const next = (changed: Parameters<typeof toReplicaConfig>[2]) => {
    registry.configure([toReplicaConfig('a', ['m'], changed)], AT);
    const [later] = registry.nextSnapshot().replicas;
    if (later === undefined) throw new Error('no replica');
    return later;
  };
  return { ...pools, replica, decisions, next };
}

describe('a replica', () => {
  test('has a host with its port, a prefix, and a seed that is that of its name everywhere', () => {
    const { replica } = createReplica();
    expect([replica.hostField, replica.pathPrefix, replica.name]).toEqual(['a.test:8000', '/base', 'a']);
    // The first 32 bits of the SHA-256 of `a`.
    expect(replica.seed).toBe(0xca978112 | 0);
  });

  test.each([
    ['auto', null, 'openai', true],
    ['auto', 'ollama', 'ollama', true],
    ['auto', 'vllm', 'vllm', false],
    ['openai', null, 'openai', false],
    ['ollama', null, 'ollama', true],
  ] as const)('may fold case or not: configured as %s, known as %s', (engine, learned, expected, mayFold) => {
    const { registry, next, replica } = createReplica({ engine });
    if (learned !== null) {
      registry.find('a')?.learn({ models: ['m'], engine: learned });
      replica.update(next({ engine }));
    }
    expect([replica.engine, replica.mayFoldCase]).toEqual([expected, mayFold]);
  });

  test('fails after refusals in a row, whatever their reason, and is well after an answer', () => {
    const { replica, decisions, shared } = createReplica();
    expect([replica.hasAnswered, replica.isFailing, replica.claimRetry()]).toEqual([false, false, false]);
    replica.noteNotConnected(REFUSED);
    expect(shared.reachability.stateOf(replica.slot)).toMatchObject({ state: 'unreachable' });
    expect(replica.isFailing).toBe(false);
    replica.noteLoading();
    expect(shared.reachability.stateOf(replica.slot)).toMatchObject({ state: 'loading' });
    const decision = { replica: 'a', judge: 'connections', forMs: 0 };
    expect([replica.isFailing, decisions]).toEqual([true, [{ ...decision, verdict: 'failing' }]]);
    expect(replica.claimRetry()).toBe(true);
    replica.noteNotConnected(REFUSED);
    replica.noteAnswered(200, true);
    replica.noteAnswered(200, true);
    expect([replica.isFailing, replica.hasAnswered]).toEqual([false, true]);
    expect(decisions.slice(1)).toEqual([{ ...decision, verdict: 'ok' }]);
  });

  test('has answered as soon as a request shows it, and is an engine then', () => {
    const { replica, shared } = createReplica();
    replica.noteAnswered(200, true);
    expect(replica.hasAnswered).toBe(true);
    expect(shared.reachability.stateOf(replica.slot)).toMatchObject({ state: 'reachable', reason: null });
  });

  test.each([
    ['https://a.test', 'tls_failed'],
    ['http://a.test', 'connection_reset'],
  ])('of %s that ends a connection for no known reason: %s', (url, reason) => {
    const { replica, shared } = createReplica({ url });
    replica.noteNotConnected(new Error('no reason'));
    expect(shared.reachability.stateOf(replica.slot)).toMatchObject({ reason });
  });

  test('is told apart in what it does with include_usage: it takes it, refuses it, or compresses its streams', () => {
    const { replica } = createReplica();
    expect([replica.acceptsIncludeUsage, replica.refusesIncludeUsage]).toEqual([false, false]);
    replica.noteUsageAccepted();
    expect([replica.acceptsIncludeUsage, replica.refusesIncludeUsage]).toEqual([true, false]);
    replica.noteUsageRefused();
    expect(replica.refusesIncludeUsage).toBe(true);
    const compressing = createReplica().replica;
    compressing.noteStreamCompressed();
    expect([compressing.acceptsIncludeUsage, compressing.refusesIncludeUsage]).toEqual([false, true]);
  });

  test('has room for requests up to its limit, except for those before which others came', () => {
    const { replica, shared } = createReplica({ maxInflight: 1 });
    expect(replica.hasRoomFor(null)).toBe(true);
    expect(replica.tryBegin()).toBe(true);
    expect([replica.inflight, replica.hasRoomFor(null), replica.tryBegin()]).toEqual([1, false, false]);
    replica.begin();
    expect(replica.inflight).toBe(2);
    replica.finish();
    replica.finish();
    const ticket = shared.waiting.join(0, 5) ?? 0;
    shared.waiting.setHead(0, replica.slot, ticket);
    expect([replica.hasRoomFor(null), replica.hasRoomFor(ticket)]).toEqual([false, true]);
    expect(createReplica().replica.hasRoomFor(null)).toBe(true);
  });

  test('hands a request over to the main thread: it is in flight there, and no more in its worker', () => {
    const { replica, shared } = createReplica();
    replica.begin();
    replica.handOver();
    expect([shared.inflightOf(replica.slot), shared.handedOverOf(replica.slot)]).toEqual([1, 1]);
    replica.finish();
    expect(shared.inflightOfWorker(0, replica.slot)).toBe(0);
  });
});

describe('the connections of a replica', () => {
  async function start() {
    const server = await startTcpServer();
    onTestFinished(() => server[Symbol.asyncDispose]());
    const created = createReplica({ url: server.url });
    const connection = await open(created.replica.upstream);
    const side = await server.next();
    return { ...created, url: server.url, connection, side };
  }

  test('are kept by a later snapshot, and replaced when its certificates change', async () => {
    const { replica, next, url, connection } = await start();
    const { upstream } = replica;
    replica.upstream.returnUnused(connection);
    replica.update(next({ url, apiKey: 'k' }));
    expect([replica.upstream === upstream, connection.isClosed, replica.config.apiKey]).toEqual([
      true,
      false,
      'k',
    ]);
    const tls = { verify: false, ca: null, cert: null, key: null } as never;
    replica.update(next({ url, tls }));
    expect([replica.upstream === upstream, connection.isClosed]).toEqual([false, true]);
    const { upstream: later } = replica;
    replica.update(next({ url, tls }));
    expect(replica.upstream).toBe(later);
  });

  test('are replaced with other time-outs, and those in use close after their requests', async () => {
    const { replica, connection, side } = await start();
    const { result } = sendOn(connection);
    await side.untilReceived('ping');
    replica.reconnect({ ...TIMEOUTS, upstreamKeepAliveMs: 0 });
    expect(connection.isClosed).toBe(false);
    side.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    await result;
    expect(connection.isClosed).toBe(true);
    // The new ones have the new time-outs.
    const fresh = await open(replica.upstream);
    replica.upstream.returnUnused(fresh);
    expect(fresh.isClosed).toBe(true);
  });

  test('have the last time-outs also after its certificates have changed', async () => {
    const { replica, next, url } = await start();
    replica.reconnect({ ...TIMEOUTS, upstreamKeepAliveMs: 0 });
    replica.update(next({ url, tls: { verify: false, ca: null, cert: null, key: null } as never }));
    const fresh = await open(replica.upstream);
    replica.upstream.returnUnused(fresh);
    expect(fresh.isClosed).toBe(true);
  });

  test('close when it is removed and nothing is in flight on it, in whichever order', async () => {
    const idle = await start();
    idle.replica.retire();
    expect(idle.connection.isClosed).toBe(true);
    const busy = await start();
    busy.replica.begin();
    busy.replica.begin();
    busy.replica.retire();
    busy.replica.finish();
    expect(busy.connection.isClosed).toBe(false);
    busy.replica.finish();
    expect(busy.connection.isClosed).toBe(true);
    const serving = await start();
    serving.replica.begin();
    serving.replica.finish();
    expect(serving.connection.isClosed).toBe(false);
  });

  test('have a fingerprint each, which is a copy of what was read', async () => {
    const { replica, connection } = await start();
    const other = await open(replica.upstream);
    const fingerprint = replica.fingerprintOf(connection);
    expect(fingerprint.text).toBeNull();
    const bytes = Buffer.from('"system_fingerprint":"fp"');
    fingerprint.note(bytes);
    const { text } = fingerprint;
    bytes.fill(0);
    expect(text?.toString()).toBe('"system_fingerprint":"fp"');
    fingerprint.note(Buffer.from('"system_fingerprint":"fp"'));
    expect(fingerprint.text).toBe(text);
    fingerprint.note(Buffer.from('"system_fingerprint":"other"'));
    expect(fingerprint.text?.toString()).toBe('"system_fingerprint":"other"');
    expect(replica.fingerprintOf(connection)).toBe(fingerprint);
    expect(replica.fingerprintOf(other)).not.toBe(fingerprint);
    expect(new Fingerprint().text).toBeNull();
  });
});
