import { expect, test } from 'vitest';
import { RedisChannels } from '#fleet';
import { startRedisServer } from '#testkit/servers/redis-server.ts';

test('a channel that the server refuses is open soon after its user may use it', async () => {
  await using redis = await startRedisServer();
  const link = await redis.openLink();
  const setChannels = (...channels: readonly string[]) =>
    redis.command('acl', 'setuser', 'gateway', 'on', '>secret', '~*', '+@all', 'resetchannels', ...channels);
  await setChannels();
  const channels = new RedisChannels({
    url: () => link.url.replace('//', '//gateway:secret@'),
    prefix: 'test',
  });
  const heard: string[] = [];
  const refused = Promise.withResolvers<string>();
  const channel = channels.open('verdicts', {
    onMessage: (message) => heard.push(message),
    onRefused: refused.resolve,
  });
  expect(await refused.promise).toBe('NOPERM');

  await setChannels('&{test}:verdicts');
  await expect.poll(() => redis.command('publish', '{test}:verdicts', 'news')).toBe('1');
  await expect.poll(() => heard).toEqual(['news']);
  channel.close();
});
