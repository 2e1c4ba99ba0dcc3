import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startGatewayProcess } from '#testkit/programs/gateway-process.ts';
import { OpenApiDocument } from '#testkit/reading/openapi-document.ts';
import { startFleet, type TestFleet } from './start-fleet.ts';

/** Prepares a gateway that can be killed. Every start uses the same state_dir. */
async function startKillable(fleet: TestFleet, folder: string) {
  const link = await fleet.redis.openLink();
  const { x, y } = fleet.replicas;
  const start = () =>
    startGatewayProcess({
      folder,
      replicas: [x, y],
      collectorUrl: 'http://127.0.0.1:9',
      fleet: { name: 'gw-b', redisUrl: link.url },
    });
  return { link, start };
}

async function chat(url: string): Promise<void> {
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
  const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body });
  await response.arrayBuffer();
}

test.concurrent('a killed gateway stays unconfirmed until it is back, and starts with the current drains', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-killed-'));
  await using fleet = await startFleet('gw-a');
  const [a] = fleet.gateways;
  const { start } = await startKillable(fleet, folder.path);
  await using first = await start();
  await first.end('SIGKILL');
  expect(await a.drain('x')).toMatchObject({ scope: 'fleet', unconfirmed: ['gw-b'] });
  expect((await a.drain('x', '?wait=6s')).replica).toMatchObject({
    safe_to_stop: null,
    unconfirmed: ['gw-b'],
  });

  await using second = await start();
  await a.until('x', ({ safe_to_stop }) => safe_to_stop === true);
  for (let sent = 0; sent < 4; sent++) await chat(second.url);
  expect(fleet.replicas.x.requests.length).toBe(0);
  await second.end('SIGTERM');
});

test.concurrent('a killed gateway that starts without the shared state knows the drains from its disk', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-killed-'));
  await using fleet = await startFleet('gw-a');
  const [a] = fleet.gateways;
  const { link, start } = await startKillable(fleet, folder.path);
  await using first = await start();
  await a.drain('x');
  await a.until('x', ({ safe_to_stop }) => safe_to_stop === true);
  await first.end('SIGKILL');
  link.become('cut');
  await using second = await start();
  for (let sent = 0; sent < 4; sent++) await chat(second.url);
  expect(fleet.replicas.x.requests.length).toBe(0);
  await second.end('SIGTERM');
});

test.concurrent('a killed gateway that does not return can be forgotten, and a running one cannot', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-killed-'));
  await using fleet = await startFleet('gw-a', 'gw-c');
  const [a, c] = fleet.gateways;
  await using killed = await (await startKillable(fleet, folder.path)).start();
  const document = await OpenApiDocument.read(a.gateway);
  const operation = document.operations.get('POST /admin/gateways/{name}/forget');
  if (operation === undefined) return expect.unreachable('it is not documented');
  const forget = async (name: string) => {
    const response = await a.post(`/admin/gateways/${name}/forget`);
    await document.check(operation, response);
    return response.status;
  };
  expect([await forget('gw-a'), await forget('gw-b'), await forget('gw-x')]).toEqual([409, 409, 404]);

  await killed.end('SIGKILL');
  await a.drain('x');
  await a.until('x', ({ unconfirmed }) => unconfirmed.join() === 'gw-b');
  a.link.become('cut');
  // A gateway that cannot read the store cannot tell which gateways have vanished.
  await expect.poll(() => forget('gw-b')).toBe(503);
  a.link.become('whole');
  await expect.poll(() => forget('gw-b')).toBe(200);
  for (const gateway of [a, c]) {
    await gateway.until('x', ({ safe_to_stop }) => safe_to_stop === true);
    expect((await gateway.gateways()).map(({ name }) => name)).toEqual(['gw-a', 'gw-c']);
  }
});
