import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createRedisStore } from '#fleet';
import { newLogicalTimestamp } from '#replicas/drain-state';
import { createAuthority } from '#testkit/certificates.ts';
import { type RedisServer, startRedisServer } from '#testkit/servers/redis-server.ts';
import type { FleetStore } from '../../../src/fleet/fleet-store.ts';

const ID = newLogicalTimestamp('');
const SNAPSHOT = { id: ID, name: 'gw', revision: 3, members: new Map(), removed: [], drains: new Map() };
const HEARTBEAT = {
  id: ID,
  number: 1,
  revision: 3,
  heard: new Map(),
  drained: new Map(),
  inflight: new Map(),
};

function open(url: string, prefix = 'spangate'): FleetStore {
  const store = createRedisStore({ url: () => url, prefix });
  onTestFinished(() => store.close());
  return store;
}

/** Reads and writes once, as a sync does. */
async function use(store: FleetStore): Promise<void> {
  await store.read(new Map());
  await store.write({ heartbeat: HEARTBEAT, snapshot: SNAPSHOT, removedIds: [] });
}

async function startRedis(): Promise<{ redis: RedisServer; urlFor: (user: string) => string }> {
  const redis = await startRedisServer();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const { url } = await redis.openLink();
  return { redis, urlFor: (user) => url.replace('//', `//${user}`) };
}

test('what is written can be read with the same prefix and database, and no other', async () => {
  const { urlFor } = await startRedis();
  const store = open(urlFor(''));
  await use(store);
  expect(await store.read(new Map())).toEqual({
    revisions: new Map([[ID, 3]]),
    snapshots: [SNAPSHOT],
    heartbeats: [HEARTBEAT],
    foreign: [],
  });
  expect((await store.read(new Map([[ID, 3]]))).snapshots).toEqual([]);
  for (const other of [open(urlFor(''), 'blue'), open(`${urlFor('')}/2`)]) {
    expect((await other.read(new Map())).revisions.size).toBe(0);
  }
});

test('an unreadable message of another version counts as a gateway, and is ignored', async () => {
  const { redis, urlFor } = await startRedis();
  await redis.command('hset', '{spangate}:revisions', ID, '7');
  await redis.command('hset', '{spangate}:ledgers', ID, '{"id":12}');
  await redis.command('set', `{spangate}:beat:${ID}`, 'later');
  expect(await open(urlFor('')).read(new Map())).toEqual({
    revisions: new Map([[ID, 7]]),
    snapshots: [],
    heartbeats: [],
    foreign: [`{spangate}:beat:${ID}`, `{spangate}:ledgers ${ID}`],
  });
});

test('the user of the URL needs only the documented commands', async () => {
  const { redis, urlFor } = await startRedis();
  const commands = ['select', 'hgetall', 'mget', 'hmget', 'multi', 'exec', 'set', 'hset', 'hdel', 'del'];
  const rights = ['on', '>p/w', '~{spangate}:*', ...commands.map((command) => `+${command}`)];
  await redis.command('acl', 'setuser', 'gateway', ...rights);
  const store = open(urlFor('gateway:p%2Fw@'));
  await use(store);
  await store.write({ heartbeat: HEARTBEAT, snapshot: null, removedIds: [newLogicalTimestamp('')] });
  await store.writeFinal(SNAPSHOT);
  const refused = open(urlFor('gateway:wrong@'));
  await expect(use(refused)).rejects.toThrow('Redis answers with an error (WRONGPASS ');
  expect(refused.address).toBe(urlFor(''));
});

test('a server that becomes read-only rejects writes, and is used again when it is writable', async () => {
  const { redis, urlFor } = await startRedis();
  const store = open(urlFor(''));
  await use(store);
  await redis.command('replicaof', '127.0.0.1', '1');
  await expect(use(store)).rejects.toThrow('Redis answers with an error (READONLY ');
  await redis.command('replicaof', 'no', 'one');
  await use(store);
});

test('a server behind TLS is used only if its certificate is valid', async () => {
  await using authority = await createAuthority();
  const { redis } = await startRedis();
  const { cert, key } = await authority.issue('redis');
  const terminator = createServer({ cert, key }, (client) => {
    const upstream = connect(redis.url.replace('unix://', ''));
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
  });
  terminator.listen(0, '127.0.0.1');
  await once(terminator, 'listening');
  onTestFinished(() => void terminator.close());
  const url = `rediss://127.0.0.1:${(terminator.address() as AddressInfo).port}`;
  await expect(use(open(url))).rejects.toThrow('Redis does not answer (UNABLE_TO_VERIFY_LEAF_SIGNATURE)');

  const trusted = getCACertificates('default');
  onTestFinished(() => setDefaultCACertificates(trusted));
  setDefaultCACertificates([...trusted, authority.ca.cert]);
  await use(open(url));
});
