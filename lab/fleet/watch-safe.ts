import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_TOKEN } from '../reliability/gateway-process.ts';

/** What was seen of `safe_to_stop`. */
export interface SafetyReport {
  /** Answers that said of a replica that it is safe to stop. */
  readonly saidSafe: number;
  /** Those that were wrong: a request was open on the replica, or came while it was said again. One line each. */
  readonly lies: readonly string[];
}

/** How it is with a replica in truth. */
export interface ReplicaFacts {
  readonly openRequests: number;
  readonly requestsReceived: number;
}

const LOOK_EVERY_MS = 20;

/** An answer that took longer to arrive may be out of date by now: nothing is concluded from it. */
const FRESH_MS = 300;

/**
 * Asks the gateways again and again what is safe to stop, and compares it with what the replicas know themselves.
 * `factsOf`: null while the replica is down.
 */
export function watchSafety(
  adminUrls: readonly string[],
  factsOf: (replica: string) => ReplicaFacts | null,
): { stop(): Promise<SafetyReport> } {
  const lies: string[] = [];
  let saidSafe = 0;
  let isStopped = false;

  /** `receivedBefore`: by replica, the requests it had received when this gateway said last that it is safe. */
  async function look(adminUrl: string, receivedBefore: Map<string, number>): Promise<void> {
    const askedAtMs = performance.now();
    const safe = await askSafe(adminUrl);
    if (performance.now() - askedAtMs > FRESH_MS) return;
    for (const replica of receivedBefore.keys()) if (!safe.includes(replica)) receivedBefore.delete(replica);
    for (const replica of safe) {
      saidSafe++;
      const { openRequests, requestsReceived } = factsOf(replica) ?? { openRequests: 0, requestsReceived: 0 };
      const news = requestsReceived - (receivedBefore.get(replica) ?? requestsReceived);
      if (openRequests > 0 || news > 0) {
        lies.push(`${adminUrl} said that ${replica} is safe to stop: ${openRequests} open, ${news} new`);
      }
      receivedBefore.set(replica, requestsReceived);
    }
  }

  async function watch(adminUrl: string): Promise<void> {
    const receivedBefore = new Map<string, number>();
    while (!isStopped) {
      await look(adminUrl, receivedBefore);
      await sleep(LOOK_EVERY_MS);
    }
  }

  const watching = Promise.all(adminUrls.map(watch));
  return {
    async stop() {
      isStopped = true;
      await watching;
      return { saidSafe, lies };
    },
  };
}

async function askSafe(adminUrl: string): Promise<readonly string[]> {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const response = await fetch(`${adminUrl}/admin/replicas`, { headers });
  const { replicas } = (await response.json()) as {
    replicas: { name: string; safe_to_stop: boolean | null }[];
  };
  return replicas.filter((replica) => replica.safe_to_stop === true).map(({ name }) => name);
}
