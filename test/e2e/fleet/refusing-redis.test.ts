import { expect, test } from 'vitest';
import { untilCondition } from '#testkit/conditions.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startRedisServer } from '#testkit/servers/redis-server.ts';
import { startGateway } from '#testkit/start-gateway.ts';

test('a gateway that Redis refuses says what Redis answers', async () => {
  await using redis = await startRedisServer();
  await using replica = await startFakeReplica({ name: 'x' });
  const link = await redis.openLink();
  await redis.command('acl', 'setuser', 'gateway', 'on', '>secret', '~*', '&*', '+@all');
  const url = link.url.replace('//', '//gateway:secret@');
  await using gateway = await startGateway({ replicas: [replica], config: { state: { redis: url } } });

  // Its connections end with it.
  await redis.command('acl', 'deluser', 'gateway');
  await expect
    .poll(async () => (await untilCondition(gateway, 'redis_away')).sentence)
    .toMatch(
      /^Redis answers with an error \(WRONGPASS .*\): drains and limits are those of this gateway alone$/,
    );
  const drained = await gateway.admin('/admin/replicas/x/drain', { method: 'POST' });
  expect(await drained.json()).toMatchObject({
    scope: 'local',
    warning: expect.stringContaining('The shared state cannot be used: '),
  });
});
