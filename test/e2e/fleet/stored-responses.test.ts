import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { answerJson, type FakeReplica } from '#testkit/fake-replica.ts';
import { printMessage } from '../../../src/fleet/responses/response-exchange.ts';
import { toStoredResponse } from '../../../src/replicas/stored-responses/stored-response.ts';
import { type FleetGateway, startFleet } from './start-fleet.ts';

const ON = { endpoints: ['responses'] };

/** Answers every request with a response whose id names the replica. */
function keepResponses(replica: FakeReplica): void {
  let count = 0;
  replica.answer(async (exchange) => {
    await answerJson({ id: `resp_${replica.name}_${++count}`, model: 'm', output: [] })(exchange);
  });
}

async function respond({ gateway }: FleetGateway, previous?: string): Promise<string> {
  const members = previous === undefined ? {} : { previous_response_id: previous };
  const response = await gateway.post('/v1/responses', { model: 'm', input: 'x', ...members });
  return ((await response.json()) as { id: string }).id;
}

const replicaOf = (id: string) => id.split('_')[1];

/** Which replicas answer this many requests that follow a response. */
async function followers(at: FleetGateway, id: string, count = 6): Promise<ReadonlySet<string | undefined>> {
  const served = [];
  for (let i = 0; i < count; i++) served.push(replicaOf(await respond(at, id)));
  return new Set(served);
}

/**
 * Resolves when `to` knows a response of `from`. What is told before the connections of a channel are open is lost: for
 * as long as `to` does not know the latest response, `from` makes another one.
 */
async function untilChannelOpens(from: FleetGateway, to: FleetGateway): Promise<void> {
  let latest = await respond(from);
  const isKnown = async () => {
    const asked = latest;
    if ([...(await followers(to, asked))].join() === replicaOf(asked)) return true;
    latest = await respond(from);
    return false;
  };
  await expect.poll(isKnown).toBe(true);
}

test('a response that one gateway relayed is known to the others, and not needed when Redis is gone', async () => {
  await using fleet = await startFleet();
  keepResponses(fleet.replicas.x);
  keepResponses(fleet.replicas.y);
  const one = await fleet.start('one', {}, ON);
  const other = await fleet.start('other', { workers: 2 }, ON);
  await untilChannelOpens(one, other);
  await untilChannelOpens(other, one);
  const known = await respond(one);
  await expect.poll(async () => (await followers(other, known)).size).toBe(1);

  await fleet.redis.kill();
  const startedMs = performance.now();
  const alone = await respond(one);
  expect((await followers(other, alone)).size).toBe(2);
  expect(performance.now() - startedMs).toBeLessThan(5_000);
  expect([...(await followers(one, alone))]).toEqual([replicaOf(alone)]);
  expect([...(await followers(other, known))]).toEqual([replicaOf(known)]);

  await fleet.redis.start();
  await untilChannelOpens(one, other);
});

test('a response that one gateway relayed is answered by another for a key that may use its model, for no other', async () => {
  await using fleet = await startFleet();
  keepResponses(fleet.replicas.x);
  keepResponses(fleet.replicas.y);
  const clients = Object.entries({ may: ['m'], 'may-not': ['other'] }).map(([name, models]) => {
    return { name, models, tenant: 't', key_sha256: hash('sha256', name) };
  });
  const one = await fleet.start('one', {}, { ...ON, clients });
  const other = await fleet.start('other', {}, { ...ON, clients });
  const bearer = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });
  const statusOf = async (method: string, id: string, key: string) => {
    const init = { method, ...bearer(key) };
    return (await fetch(`${other.gateway.url}/v1/responses/${id}`, init)).status;
  };
  const askForNew = async () => {
    const made = await one.gateway.post('/v1/responses', { model: 'm', input: 'x' }, bearer('may'));
    const { id } = (await made.json()) as { id: string };
    const statuses = [];
    for (const key of ['may-not', 'may']) {
      for (const method of ['GET', 'DELETE']) statuses.push(await statusOf(method, id, key));
    }
    return statuses;
  };
  await expect.poll(askForNew).toEqual([404, 404, 200, 200]);
});

test('a response that one gateway relayed is its tenant\u2019s at another, which a message cannot change', async () => {
  await using fleet = await startFleet();
  keepResponses(fleet.replicas.x);
  keepResponses(fleet.replicas.y);
  const clients = ['owner', 'colleague', 'stranger'].map((name) => {
    return { name, tenant: name === 'stranger' ? 'u' : 't', key_sha256: hash('sha256', name) };
  });
  const one = await fleet.start('one', {}, { ...ON, clients });
  const other = await fleet.start('other', { workers: 2 }, { ...ON, clients });
  const withKey = (key: string) => ({ headers: { 'x-api-key': key, Connection: 'close' } });
  const make = async () => {
    const made = await one.gateway.post('/v1/responses', { model: 'm', input: 'x' }, withKey('owner'));
    return ((await made.json()) as { id: string }).id;
  };
  const statusesOf = async (id: string) => {
    const statuses = [];
    for (const key of ['owner', 'colleague', 'stranger']) {
      const asked = await fetch(`${other.gateway.url}/v1/responses/${id}`, withKey(key));
      const body = { model: 'm', previous_response_id: id };
      const continued = await other.gateway.post('/v1/responses', body, withKey(key));
      statuses.push(asked.status, continued.status);
    }
    return statuses;
  };
  let id = '';
  const askForNew = async () => {
    id = await make();
    return await statusesOf(id);
  };
  await expect.poll(askForNew).toEqual([200, 200, 200, 200, 404, 404]);

  const claim = printMessage([toStoredResponse(id, { seed: 1, model: 'm', tenant: 'u' })]);
  await fleet.redis.command('publish', '{spangate}:responses', claim);
  // A response that is told after the claim is known: so the claim has been read.
  const marker = toStoredResponse('resp_marker', { seed: 1, model: 'm', tenant: 'u' });
  await fleet.redis.command('publish', '{spangate}:responses', printMessage([marker]));
  const marked = async () =>
    (await fetch(`${other.gateway.url}/v1/responses/resp_marker`, withKey('stranger'))).status;
  await expect.poll(marked).toBe(200);
  expect(await statusesOf(id)).toEqual([200, 200, 200, 200, 404, 404]);
});

test('messages of nobody in the fleet do no harm', async () => {
  await using fleet = await startFleet();
  keepResponses(fleet.replicas.x);
  keepResponses(fleet.replicas.y);
  const one = await fleet.start('one', {}, ON);
  await expect
    .poll(async () => (await fleet.redis.command('publish', '{spangate}:responses', 'nonsense')).trim())
    .toBe('1');
  await fleet.redis.command('publish', '{spangate}:responses', '0'.repeat(56));
  const id = await respond(one);
  expect([...(await followers(one, id))]).toEqual([replicaOf(id)]);
});

test('a gateway without the endpoint takes no part', async () => {
  await using fleet = await startFleet('one');
  expect((await fleet.redis.command('publish', '{spangate}:responses', 'x')).trim()).toBe('0');
});
