import { vi } from 'vitest';
import type { FakeReplica } from '../../support/fake-replica.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '../../support/start-gateway.ts';

// Each worker loads the whole data plane, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

/** A gateway of several workers; sections of the configuration are laid over this one. */
export function startWorkers(
  workers: number,
  { config = {}, ...options }: StartGatewayOptions,
): Promise<StartedGateway> {
  return startGateway({ ...options, config: { ...config, gateway: { workers, ...config.gateway } } });
}

/** So many requests at once, each on a connection of its own, so that every worker gets some; null: no answer. */
export function chatAtOnce(
  gateway: StartedGateway,
  count: number,
  init: RequestInit = {},
): Promise<Response | null>[] {
  return Array.from({ length: count }, () => gateway.chat({}, init).catch(() => null));
}

/** Both sides of what always holds, and how many records wait. */
export async function balanceOf(
  gateway: StartedGateway,
): Promise<{ begun: number; accounted: number; queued: number }> {
  const { recorded, restored, exported, dropped, rejected, queued, spooled, lost } = await gateway.stats();
  const accounted = [exported, dropped, rejected, queued, spooled, lost].map((count) => count ?? 0);
  return { begun: (recorded ?? 0) + (restored ?? 0), accounted: sumOf(accounted), queued: queued ?? 0 };
}

/** By how much the turns of these replicas differ. */
export function spreadOf(replicas: readonly FakeReplica[]): number {
  const counts = replicas.map(({ requests }) => requests.length);
  return Math.max(...counts) - Math.min(...counts);
}

/** All of them together. */
export function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
