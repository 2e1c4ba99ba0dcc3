import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisServer } from '../../test/support/redis-server.ts';
import { runRolloutScript } from '../rollout/script.ts';
import { type StandReport, startStand } from './stand.ts';

/** What a rollout came to during which the shared state was lost, and something foreign was put into it. */
export interface OutageReport extends StandReport {
  /** Of deploy/rollout.sh. */
  readonly exitCode: number;
  readonly restarted: readonly string[];
  readonly reachedWhileDrained: number;
  readonly cut: number;
}

/** The store is killed when this replica is restarted, and comes back empty after the time. */
const KILLED_WITH = 'vllm-1';
export const AWAY_MS = 12_000;

/** A field that no gateway wrote stands in the store from the restart of this replica on, for that time. */
const DISTURBED_WITH = 'vllm-2';
const FOREIGN_FIELD = ['{spangate}:revisions', 'foo'] as const;
export const FOREIGN_MS = 3_000;

/**
 * Rolls four simulated replicas with deploy/rollout.sh behind two gateways that share a Redis server, each under load.
 * The script asks one of the gateways; the other has a long link to Redis. In the middle Redis is killed, and comes
 * back without what it held; later a foreign field is put into it for a while.
 */
export async function rollThroughOutage(): Promise<OutageReport> {
  const faults: Promise<void>[] = [];
  await using stand = await startStand((name, redis) => {
    if (name === KILLED_WITH) faults.push(loseStore(redis));
    if (name === DISTURBED_WITH) faults.push(disturbStore(redis));
  });
  const { folder, replicas, gateways } = stand;
  const exitCode = await runRolloutScript(folder, gateways[0].adminUrl, replicas);
  await Promise.all(faults);
  const report = await stand.finish();
  const { restarted, reachedWhileDrained, cut } = replicas;
  return { ...report, exitCode, restarted, reachedWhileDrained, cut };
}

async function loseStore(redis: RedisServer): Promise<void> {
  await redis.kill();
  await sleep(AWAY_MS);
  await redis.start();
}

async function disturbStore(redis: RedisServer): Promise<void> {
  await redis.command('hset', ...FOREIGN_FIELD, '1');
  await sleep(FOREIGN_MS);
  await redis.command('hdel', ...FOREIGN_FIELD);
}
