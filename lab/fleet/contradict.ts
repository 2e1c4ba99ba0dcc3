import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_TOKEN, type GatewayProcess } from '../reliability/gateway-process.ts';
import { type Stand, type StandReport, startStand } from './stand.ts';

/** What came of drains and undrains that crossed each other. */
export interface ContradictionReport extends StandReport {
  /** Drains while a foreign field stood in Redis, or after it: those that both gateways called safe to stop. */
  readonly spread: number;
  readonly notSpread: readonly string[];
  /** Drains right after an undrain on the other gateway. */
  readonly last: number;
  /** Of these, those that did not hold, or were reached by a request. */
  readonly lost: readonly string[];
  /** Drains right before an undrain on the other gateway, whose answer did not say so. */
  readonly hidden: readonly string[];
}

/** How long after one gateway the other is asked: sooner than a long link brings news. */
const APART_MS = 100;

/** For how long a drained replica must get nothing. */
const QUIET_MS = 1_000;

/** Foreign fields as they may stand in Redis; they stay. */
const FOREIGN_FIELDS = ['foo', '__proto__', 'constructor'];

interface DrainAnswer {
  readonly replica: { readonly drained: boolean; readonly safe_to_stop: boolean | null };
  readonly scope: string;
  readonly overtaken: boolean;
}

/**
 * Drains and undrains each of four replicas on two gateways under load, one of which has a long link to Redis, so that
 * it believes the opposite of what is so when it is asked; with foreign fields in Redis from the start.
 */
export async function contradict(): Promise<ContradictionReport> {
  await using stand = await startStand();
  for (const field of FOREIGN_FIELDS) await stand.redis.command('hset', '{spangate}:revisions', field, '1');
  const found: Found = { spread: 0, last: 0, notSpread: [], lost: [], hidden: [] };
  for (const { name } of stand.replicas.replicas) {
    await spread(stand, name, found);
    await drainLast(stand, name, found);
    await drainFirst(stand, name, found);
  }
  return { ...(await stand.finish()), ...found };
}

/** A report in the making. */
type Found = { spread: number; last: number; notSpread: string[]; lost: string[]; hidden: string[] };

async function spread({ gateways }: Stand, name: string, found: Found): Promise<void> {
  await call(gateways[0], name, 'drain');
  // Each of them is asked by its own: it tells when all have confirmed.
  const safe = await Promise.all(gateways.map((gateway) => untilSafe(gateway, name)));
  if (safe.every(Boolean)) found.spread++;
  else found.notSpread.push(`${name} was not called safe to stop by both`);
}

/** An undrain by the first gateway, and a drain by the second, which has not heard of it. */
async function drainLast({ gateways, replicas }: Stand, name: string, found: Found): Promise<void> {
  const [near, far] = gateways;
  const undraining = call(near, name, 'undrain');
  await sleep(APART_MS);
  const { replica, scope, overtaken } = await call(far, name, 'drain');
  await undraining;
  found.last++;
  if (!replica.drained || scope !== 'fleet' || overtaken || !(await untilSafe(near, name))) {
    found.lost.push(`${name}: ${JSON.stringify({ drained: replica.drained, scope, overtaken })}`);
    return;
  }
  const before = replicas.factsOf(name)?.requestsReceived ?? 0;
  await sleep(QUIET_MS);
  const reached = (replicas.factsOf(name)?.requestsReceived ?? 0) - before;
  if (reached > 0) found.lost.push(`${name}: ${reached} requests although it was drained`);
}

/** A drain by the second gateway, and an undrain by the first before the other has heard of anything. */
async function drainFirst({ gateways }: Stand, name: string, found: Found): Promise<void> {
  const [near, far] = gateways;
  await call(near, name, 'undrain');
  const draining = call(far, name, 'drain');
  await sleep(APART_MS);
  await call(near, name, 'undrain');
  const { replica, scope, overtaken } = await draining;
  if (replica.drained && scope === 'fleet' && !overtaken) found.hidden.push(name);
}

const SAFE_WITHIN_MS = 20_000;

async function untilSafe({ adminUrl }: GatewayProcess, name: string): Promise<boolean> {
  const startedAtMs = performance.now();
  while (performance.now() - startedAtMs < SAFE_WITHIN_MS) {
    const { replicas } = (await ask(adminUrl, 'GET', '/admin/replicas')) as {
      replicas: { name: string; safe_to_stop: boolean | null }[];
    };
    if (replicas.some((replica) => replica.name === name && replica.safe_to_stop === true)) return true;
    await sleep(50);
  }
  return false;
}

async function call(
  gateway: GatewayProcess,
  name: string,
  action: 'drain' | 'undrain',
): Promise<DrainAnswer> {
  return (await ask(gateway.adminUrl, 'POST', `/admin/replicas/${name}/${action}`)) as DrainAnswer;
}

async function ask(adminUrl: string, method: string, path: string): Promise<unknown> {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  return await (await fetch(adminUrl + path, { method, headers })).json();
}
