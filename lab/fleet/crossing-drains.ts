import { setTimeout as sleep } from 'node:timers/promises';
import { askAdmin, type GatewayProcess, readSafeToStop } from '#testkit/programs/gateway-process.ts';
import type { Tell } from '#testkit/programs/progress.ts';
import { startTestbed, type Testbed, type TestbedReport } from './testbed.ts';

/** The result of drains and undrains that crossed each other. */
export interface CrossingReport extends TestbedReport {
  /** Drains that both gateways confirmed as safe to stop, with foreign fields in Redis. */
  readonly confirmed: number;
  readonly unconfirmed: readonly string[];
  /** Drains right after an undrain on the other gateway. */
  readonly later: number;
  /** Of these, those that did not hold, or whose replica got a request. */
  readonly lost: readonly string[];
  /** Drains right before an undrain on the other gateway whose answer did not say that they were overtaken. */
  readonly hidden: readonly string[];
}

/** Time between the requests to the two gateways: shorter than the slow link takes to deliver news. */
const APART_MS = 100;

/** For how long a drained replica must get no request. */
const QUIET_MS = 1_000;

/** Foreign fields as they may be in Redis; they stay. */
const FOREIGN_FIELDS = ['foo', '__proto__', 'constructor'];

interface DrainAnswer {
  readonly replica: { readonly drained: boolean; readonly safe_to_stop: boolean | null };
  readonly scope: string;
  readonly overtaken: boolean;
}

/**
 * Drains and undrains each of four replicas on two gateways under load. One gateway has a slow link to Redis, so that
 * its state is out of date when it is asked. Redis holds foreign fields from the start.
 */
export async function crossDrains(tell: Tell): Promise<CrossingReport> {
  await using testbed = await startTestbed();
  for (const field of FOREIGN_FIELDS) await testbed.redis.command('hset', '{spangate}:revisions', field, '1');
  const found: Findings = { confirmed: 0, later: 0, unconfirmed: [], lost: [], hidden: [] };
  for (const { name } of testbed.replicaSet.replicas) {
    tell(name);
    await drainOnBoth(testbed, name, found);
    await drainAfterUndrain(testbed, name, found);
    await drainBeforeUndrain(testbed, name, found);
  }
  return { ...(await testbed.finish()), ...found };
}

type Findings = {
  confirmed: number;
  later: number;
  unconfirmed: string[];
  lost: string[];
  hidden: string[];
};

async function drainOnBoth({ gateways }: Testbed, name: string, found: Findings): Promise<void> {
  await request(gateways[0], name, 'drain');
  const areSafe = await Promise.all(gateways.map((gateway) => becomesSafe(gateway, name)));
  if (areSafe.every(Boolean)) found.confirmed++;
  else found.unconfirmed.push(`${name} was not safe to stop on both gateways`);
}

/** An undrain by the first gateway, then a drain by the second, which has not heard of the undrain. */
async function drainAfterUndrain(
  { gateways, replicaSet }: Testbed,
  name: string,
  found: Findings,
): Promise<void> {
  const [near, far] = gateways;
  const undraining = request(near, name, 'undrain');
  await sleep(APART_MS);
  const { replica, scope, overtaken } = await request(far, name, 'drain');
  await undraining;
  found.later++;
  if (!replica.drained || scope !== 'fleet' || overtaken || !(await becomesSafe(near, name))) {
    found.lost.push(`${name}: ${JSON.stringify({ drained: replica.drained, scope, overtaken })}`);
    return;
  }
  const before = replicaSet.factsOf(name)?.requestsReceived ?? 0;
  await sleep(QUIET_MS);
  const reached = (replicaSet.factsOf(name)?.requestsReceived ?? 0) - before;
  if (reached > 0) found.lost.push(`${name}: ${reached} requests although it was drained`);
}

/** A drain by the second gateway, then an undrain by the first, before either has heard of the other's. */
async function drainBeforeUndrain({ gateways }: Testbed, name: string, found: Findings): Promise<void> {
  const [near, far] = gateways;
  await request(near, name, 'undrain');
  const draining = request(far, name, 'drain');
  await sleep(APART_MS);
  await request(near, name, 'undrain');
  const { replica, scope, overtaken } = await draining;
  if (replica.drained && scope === 'fleet' && !overtaken) found.hidden.push(name);
}

const SAFE_WITHIN_MS = 20_000;

async function becomesSafe({ adminUrl }: GatewayProcess, name: string): Promise<boolean> {
  const startedAtMs = performance.now();
  while (performance.now() - startedAtMs < SAFE_WITHIN_MS) {
    if ((await readSafeToStop(adminUrl)).includes(name)) return true;
    await sleep(50);
  }
  return false;
}

async function request(
  { adminUrl }: GatewayProcess,
  name: string,
  action: 'drain' | 'undrain',
): Promise<DrainAnswer> {
  return (await askAdmin(adminUrl, 'POST', `/admin/replicas/${name}/${action}`)) as DrainAnswer;
}
