import type { CollectedSpan, FakeCollector } from '#testkit/fake-collector.ts';
import type { FakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

// Each worker loads the whole data plane, which takes seconds on a busy machine.
/** Starts a gateway of several workers. `config` overrides its configuration by section. */
export function startWorkers(
  workers: number,
  { config = {}, ...options }: StartGatewayOptions,
): Promise<StartedGateway> {
  return startGateway({
    ...options,
    config: { ...config, gateway: { workers, ...(config.gateway as object) } },
  });
}

/** Sends `count` requests at once, each on its own connection, so that every worker gets some; null: no answer. */
export function chatAtOnce(
  gateway: StartedGateway,
  count: number,
  init: RequestInit = {},
): Promise<Response | null>[] {
  return Array.from({ length: count }, () => gateway.chat({}, init).catch(() => null));
}

/** Both sides of the balance of records, and how many are queued. */
export async function balanceOf(
  gateway: StartedGateway,
): Promise<{ begun: number; accounted: number; queued: number }> {
  const { recorded, restored, exported, dropped, rejected, queued, spooled, lost } = await gateway.stats();
  const accounted = [exported, dropped, rejected, queued, spooled, lost].map((count) => count ?? 0);
  return { begun: (recorded ?? 0) + (restored ?? 0), accounted: sumOf(accounted), queued: queued ?? 0 };
}

/** The spans of requests. That a worker was replaced is a span, too. */
export function requestSpansOf({ spans }: FakeCollector): readonly CollectedSpan[] {
  return spans.filter(({ attributes }) => 'gateway.request_id' in attributes);
}

/** The largest difference between the numbers of requests of these replicas. */
export function spreadOf(replicas: readonly FakeReplica[]): number {
  const counts = replicas.map(({ requests }) => requests.length);
  return Math.max(...counts) - Math.min(...counts);
}

/** The sum of the numbers. */
export function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
