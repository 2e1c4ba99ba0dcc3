import { setTimeout as sleep } from 'node:timers/promises';
import type { RolloutSize } from '#testkit/programs/replica-set.ts';
import { runRollout } from '#testkit/programs/rollout-command.ts';
import type { RedisServer } from '#testkit/servers/redis-server.ts';
import { startTestbed, type TestbedReport, type TestbedSize } from './testbed.ts';

/** The result of a rollout during which the shared state was lost and later disturbed. */
export interface OutageReport extends TestbedReport {
  /** Of `gateway rollout`. */
  readonly exitCode: number;
  readonly restarted: readonly string[];
  readonly reachedWhileDrained: number;
  readonly cut: number;
}

/** Redis is killed when this replica is restarted, and comes back empty. */
const KILLED_WITH = 'vllm-1';
export const OUTAGE_MS = 12_000;

/** From the restart of this replica on, Redis holds a field that no gateway wrote. */
const DISTURBED_WITH = 'vllm-2';
const FOREIGN_FIELD = ['{spangate}:revisions', 'foo'] as const;
export const FOREIGN_MS = 3_000;

/** How much this rollout does. The program uses the defaults; the test takes less. */
export interface OutageSize extends TestbedSize, Pick<RolloutSize, 'rolled' | 'tell'> {
  /** How long Redis is away. Default: 12 s. */
  readonly outageMs?: number;
}

/**
 * Rolls four simulated replicas with `gateway rollout` behind two gateways under load that share a Redis server. The
 * script asks one of the gateways; the other has a slow link to Redis. In the middle Redis is killed and comes back
 * empty; later it holds a foreign field for a while.
 */
export async function rollThroughOutage({
  rolled,
  tell,
  outageMs = OUTAGE_MS,
  ...size
}: OutageSize = {}): Promise<OutageReport> {
  const faults: Promise<void>[] = [];
  await using testbed = await startTestbed(size, (name, redis) => {
    if (name === KILLED_WITH) faults.push(loseStore(redis, outageMs));
    if (name === DISTURBED_WITH) faults.push(disturbStore(redis));
  });
  const { folder, replicaSet, gateways } = testbed;
  const exitCode = await runRollout({
    folder,
    adminUrl: gateways[0].adminUrl,
    replicaSet,
    names: rolled,
    tell,
  });
  await Promise.all(faults);
  const report = await testbed.finish();
  const { restarted, reachedWhileDrained, cut } = replicaSet;
  return { ...report, exitCode, restarted, reachedWhileDrained, cut };
}

async function loseStore(redis: RedisServer, outageMs: number): Promise<void> {
  await redis.kill();
  await sleep(outageMs);
  await redis.start();
}

async function disturbStore(redis: RedisServer): Promise<void> {
  await redis.command('hset', ...FOREIGN_FIELD, '1');
  await sleep(FOREIGN_MS);
  await redis.command('hdel', ...FOREIGN_FIELD);
}
