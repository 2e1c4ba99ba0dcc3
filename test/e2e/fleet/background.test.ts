import { expect, test } from 'vitest';
import { createResponseStore } from '#testkit/engines/response-store.ts';
import type { StartedGateway } from '#testkit/start-gateway.ts';
import { type FleetGateway, startFleet, type TestFleet } from './start-fleet.ts';

const SECTIONS = { endpoints: ['responses'] };
/** Looks come seconds apart at most, and the machine may be busy. */
const TIMEOUT_MS = 30_000;

/** Lets replica `x` go on with responses in the background. */
function answerOn({ replicas: { x } }: TestFleet) {
  const responses = createResponseStore();
  x.answer(responses.script);
  x.answerProbes(responses.probeScript);
  return responses;
}

/** Begins a response in the background on `x`. */
async function begin(gateway: StartedGateway): Promise<string> {
  await gateway.admin('/admin/replicas/y/drain', { method: 'POST' });
  const response = await gateway.post('/v1/responses', { model: 'm', input: 'Hi', background: true });
  expect(response.status).toBe(200);
  return ((await response.json()) as { id: string }).id;
}

const until = (gateway: FleetGateway, expected: object) =>
  expect.poll(() => gateway.replica('x'), { timeout: TIMEOUT_MS }).toMatchObject(expected);

const RUNNING = { background: 1, background_unknown: 0, safe_to_stop: false };
const UNKNOWN = { background: 1, background_unknown: 1, safe_to_stop: null, unconfirmed: [] };
const SAFE = { background: 0, background_unknown: 0, safe_to_stop: true };

test('a drain waits for what a gateway followed that has stopped, until it is back and the response is over', async () => {
  await using fleet = await startFleet();
  const responses = answerOn(fleet);
  const a = await fleet.start('gw-a', {}, SECTIONS);
  const b = await fleet.start('gw-b', {}, SECTIONS);
  const id = await begin(a.gateway);
  await b.drain('x', '?force=true');
  await until(b, RUNNING);
  await a.gateway.close();
  await until(b, UNKNOWN);
  expect(a.gateway.records).toEqual([]);

  const again = await fleet.start('gw-a', {}, SECTIONS);
  await until(b, RUNNING);
  responses.set(id, 'completed');
  await until(b, SAFE);
  expect(await again.gateway.nextRecord()).toMatchObject({ response_id: id, background_end: 'ended' });
});

test('and no longer than limits.background, which the log says', async () => {
  await using fleet = await startFleet();
  answerOn(fleet);
  const limited = { ...SECTIONS, limits: { background: '3s' } };
  const a = await fleet.start('gw-a', {}, limited);
  const b = await fleet.start('gw-b', {}, limited);
  await begin(a.gateway);
  await b.drain('x', '?force=true');
  await a.gateway.close();
  await until(b, UNKNOWN);
  await until(b, SAFE);
  await b.gateway.untilLogged('of a gateway that has stopped are older than limits.background');
});

test('what a gateway follows is known again when the store was away, also if it comes back empty', async () => {
  await using fleet = await startFleet();
  const responses = answerOn(fleet);
  const a = await fleet.start('gw-a', {}, SECTIONS);
  const b = await fleet.start('gw-b', {}, SECTIONS);
  const id = await begin(a.gateway);
  await b.drain('x', '?force=true');
  await until(b, RUNNING);
  await fleet.redis.kill();
  await until(b, { safe_to_stop: null });
  await fleet.redis.start();
  await until(b, RUNNING);
  await a.gateway.close();
  await until(b, UNKNOWN);
  await fleet.redis.kill();
  await fleet.redis.start();
  await until(b, UNKNOWN);
  const again = await fleet.start('gw-a', {}, SECTIONS);
  await until(b, RUNNING);
  responses.set(id, 'completed');
  await until(b, SAFE);
  await again.gateway.close();
});
