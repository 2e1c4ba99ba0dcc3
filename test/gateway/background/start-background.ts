import { expect, onTestFinished } from 'vitest';
import { createResponseStore, type ResponseStore } from '#testkit/engines/response-store.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import {
  type ConfiguredReplica,
  type StartedGateway,
  type StartGatewayOptions,
  startGateway,
} from '#testkit/start-gateway.ts';

/** A replica with a store of responses, and a gateway before it. */
export interface Setup {
  readonly gateway: StartedGateway;
  readonly replica: FakeReplica;
  readonly store: ResponseStore;
}

/** Starts both for one test. `keys` are added to what the configuration says of the replica. */
export async function startBackground(
  config: StartGatewayOptions['config'] = {},
  keys: Partial<ConfiguredReplica> = {},
  options: Partial<StartGatewayOptions> = {},
): Promise<Setup> {
  const store = createResponseStore();
  const replica = await startFakeReplica({ name: 'a', script: store.script });
  replica.answerProbes(store.probeScript);
  const gateway = await startGateway({
    ...options,
    replicas: [{ name: 'a', url: replica.url, ...keys }],
    config: { endpoints: ['responses'], ...config },
  });
  onTestFinished(async () => {
    await gateway.close();
    await replica.close();
  });
  return { gateway, replica, store };
}

/** Asks for a response in the background and returns its id. */
export async function begin(
  gateway: StartedGateway,
  members: object = {},
  init: RequestInit = {},
): Promise<string> {
  const body = { model: 'm', input: 'Hi', background: true, ...members };
  const response = await gateway.post('/v1/responses', body, init);
  expect(response.status).toBe(200);
  return ((await response.json()) as { id: string }).id;
}

/** What the admin API says of the work of the replica. */
export async function look(gateway: StartedGateway) {
  const [replica] = await gateway.replicas();
  if (replica === undefined) throw new Error('the gateway has no replica');
  const { inflight, background, background_unknown, safe_to_stop } = replica;
  return { inflight, background, background_unknown, safe_to_stop };
}

/** Resolves when it says this. */
export async function until(
  gateway: StartedGateway,
  expected: Awaited<ReturnType<typeof look>>,
): Promise<void> {
  await expect.poll(() => look(gateway)).toEqual(expected);
}

export async function drain(gateway: StartedGateway): Promise<void> {
  expect((await gateway.admin('/admin/replicas/a/drain', { method: 'POST' })).status).toBe(200);
}

export const RUNNING = { inflight: 0, background: 1, background_unknown: 0, safe_to_stop: false };
/** It is drained, and nobody knows whether it goes on with the response. */
export const UNKNOWN = { inflight: 0, background: 1, background_unknown: 1, safe_to_stop: null };
export const SAFE = { inflight: 0, background: 0, background_unknown: 0, safe_to_stop: true };
