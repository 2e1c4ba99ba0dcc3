import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createProbeConnections } from '#replicas';
import { blockThread } from '#testkit/block-thread.ts';
import { toReplicaConfig } from '#testkit/pool.ts';
import { probe } from '../../../src/replicas/probes/probe.ts';

test('an answer that came while the event loop stood still beyond the deadline is one', async () => {
  await using server = createServer((_request, response) => {
    response.end('ok');
    blockThread(600);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = { ...toReplicaConfig('a'), url };
  const connections = createProbeConnections(config, 10_000);

  const found = await probe(
    { connections, pathPrefix: '', config },
    {
      path: '/health',
      accept: '*/*',
      timeoutMs: 500,
      isWanted: () => true,
      maxBytes: 10,
      onLongBody: 'ignore',
    },
  );

  await connections.destroy();
  expect(found).toEqual({ kind: 'answer', status: 200, text: 'ok' });
});
