import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { answerJson, hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { startRedisServer } from '#testkit/servers/redis-server.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const USED = {
  id: 'x',
  object: 'chat.completion',
  choices: [],
  usage: { prompt_tokens: 500, completion_tokens: 400, total_tokens: 900 },
};

test('what a client uses of one gateway is charged at the other, and a Redis that is gone stops nobody', async () => {
  await using redis = await startRedisServer();
  await using replica = await startFakeReplica();
  const clients = [
    { name: 'a', key_sha256: createHash('sha256').update('key').digest('hex'), tokens_per_minute: 1000 },
  ];
  const start = async (name: string) =>
    await startGateway({
      replicas: [replica],
      config: { gateway: { name }, state: { redis: (await redis.openLink()).url }, clients },
    });
  await using first = await start('first');
  await using second = await start('second');
  const send = async (gateway: typeof first, maxTokens: number) => {
    const response = await gateway.chat({ max_tokens: maxTokens }, { headers: { 'x-api-key': 'key' } });
    await response.text();
    return response.status;
  };
  // An answer with an error costs nothing, so that the test can look again and again.
  replica.answer(answerJson({ error: {} }, { status: 400 }));
  const until = async (gateway: typeof first, status: number) => {
    await expect.poll(() => send(gateway, 900), { interval: 50 }).toBe(status);
  };
  await until(second, 400);

  replica.answerOnce(answerJson(USED));
  expect(await send(first, 10)).toBe(200);
  await until(second, 429);

  await redis.kill();
  expect(await send(second, 10)).toBe(400);
  expect(await send(first, 10)).toBe(400);
});

test('a request without a record that one gateway relays is charged at the other', async () => {
  await using redis = await startRedisServer();
  await using replica = await startFakeReplica();
  const digest = createHash('sha256').update('key').digest('hex');
  const clients = [{ name: 'a', key_sha256: digest, requests_per_minute: 100 }];
  const start = async (name: string) => {
    const state = { redis: (await redis.openLink()).url };
    const config = { gateway: { name }, state, clients, pass: ['GET /version'] };
    return await startGateway({ replicas: [replica], config });
  };
  await using first = await start('first');
  await using second = await start('second');
  const ask = async ({ url }: typeof first) => {
    const response = await fetch(`${url}/version`, { headers: { 'x-api-key': 'key' } });
    await response.text();
    return response;
  };
  const knownTo = async (gateway: typeof first) =>
    ((await (await gateway.admin('/admin/gateways')).json()) as { gateways: object[] }).gateways.length;
  await expect.poll(() => knownTo(first)).toBe(2);
  await expect.poll(() => knownTo(second)).toBe(2);
  for (let sent = 0; sent < 90; sent++) expect((await ask(first)).status).toBe(200);
  const left = async () => Number((await ask(second)).headers.get('x-ratelimit-remaining-requests'));
  await expect.poll(left, { interval: 200 }).toBeLessThan(30);
});

test('max_inflight is divided between gateways, and returns from one that was killed', async () => {
  await using redis = await startRedisServer();
  await using replica = await startFakeReplica();
  const digest = createHash('sha256').update('key').digest('hex');
  const clients = [{ name: 'a', key_sha256: digest, max_inflight: 8 }];
  const start = async (name: string) => {
    const link = await redis.openLink();
    const config = { gateway: { name }, state: { redis: link.url }, clients, shutdown: { grace: '0s' } };
    return { link, gateway: await startGateway({ replicas: [replica], config }) };
  };
  const [first, second] = await Promise.all([start('first'), start('second')]);
  await using _first = first.gateway;
  await using _second = second.gateway;
  replica.answer(hang);
  const leave = new AbortController();
  /** Sends requests that run on. Resolves with how many were refused, when the others have reached the replica. */
  const refusedOf = async ({ gateway }: typeof first, count: number) => {
    const seen = replica.requests.length;
    let refused = 0;
    for (let sent = 0; sent < count; sent++) {
      const answer = gateway.chat({}, { headers: { 'x-api-key': 'key' }, signal: leave.signal }).then(
        ({ status }) => status,
        () => null,
      );
      const arrived = replica.untilRequests(seen + sent + 1 - refused).then(() => 'arrived');
      if ((await Promise.race([answer, arrived])) === 429) refused += 1;
    }
    return refused;
  };
  const knownTo = async ({ gateway }: typeof first) =>
    ((await (await gateway.admin('/admin/gateways')).json()) as { gateways: object[] }).gateways.length;
  await expect.poll(() => knownTo(first)).toBe(2);
  await expect.poll(() => knownTo(second)).toBe(2);
  expect(await refusedOf(first, 12)).toBeGreaterThanOrEqual(4);
  expect(await refusedOf(second, 12)).toBeGreaterThanOrEqual(8);
  expect(replica.requests.length).toBeLessThanOrEqual(8);
  // The first one is cut off for good: its share returns when its heartbeat is over.
  first.link.become('cut');
  await expect.poll(() => refusedOf(second, 1), { interval: 200 }).toBe(0);
  leave.abort();
});
