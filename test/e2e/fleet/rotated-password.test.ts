import { expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startRedisServer } from '#testkit/servers/redis-server.ts';
import { startGateway } from '#testkit/start-gateway.ts';

test('a reload takes another password of Redis, which the next connections use', async () => {
  await using redis = await startRedisServer();
  await using replica = await startFakeReplica();
  const link = await redis.openLink();
  const stateOf = (password: string) => ({
    state: { redis: link.url.replace('//', `//gateway:${password}@`) },
  });
  const setPassword = (password: string) =>
    redis.command('acl', 'setuser', 'gateway', 'reset', 'on', `>${password}`, '~*', '&*', '+@all');
  /** Connections of the user: one of the store, two of the channels. */
  const connections = async () => (await redis.command('client', 'list')).split('user=gateway ').length - 1;
  await setPassword('old');
  const endpoints = ['responses'];
  await using gateway = await startGateway({
    replicas: [replica],
    config: { ...stateOf('old'), endpoints },
  });
  await expect.poll(connections).toBe(3);

  gateway.writeConfig({ config: { ...stateOf('new'), endpoints } });
  expect(await (await gateway.reload()).json()).toMatchObject({
    changed: ['state.redis'],
    needs_restart: [],
  });
  // The user stays connected until it is deleted, then nothing but the new password lets it in.
  await redis.command('acl', 'deluser', 'gateway');
  await setPassword('new');
  await expect.poll(connections).toBe(3);
  expect(gateway.logLines.join('')).not.toMatch(/gateway:(?:old|new)@/);
});
