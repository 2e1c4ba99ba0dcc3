import { createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { listen } from '#testkit/servers/local-server.ts';
import { RedisChannels } from '../../../src/fleet/redis/redis-channel.ts';

test('a channel that is closed while its connections open leaves none of them open', async () => {
  const server = createServer();
  const port = await listen(server);
  try {
    const channels = new RedisChannels({ url: () => `redis://127.0.0.1:${port}`, prefix: 'spangate' });
    const opened: Socket[] = [];
    server.on('connection', (socket) => opened.push(socket.on('error', () => undefined).resume()));
    channels.open('verdicts', { onMessage: () => undefined, onRefused: () => undefined }).close();
    await expect.poll(() => opened.length).toBe(2);
    await expect.poll(() => opened.every((socket) => socket.closed)).toBe(true);
  } finally {
    server.close();
  }
});
