import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { answerJson, startFakeReplica } from '../../support/fake-replica.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { startGateway } from '../../support/start-gateway.ts';

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
