import { setTimeout as sleep } from 'node:timers/promises';
import { readSafeToStop } from '#testkit/programs/gateway-process.ts';

/** What the answers about `safe_to_stop` were worth. */
export interface SafetyReport {
  /** Answers that called a replica safe to stop. */
  readonly saidSafe: number;
  /** Those that were wrong, one line each: a request was open on the replica, or came between two such answers. */
  readonly falseAnswers: readonly string[];
}

/** What a replica knows of its own requests. */
export interface ReplicaFacts {
  readonly openRequests: number;
  readonly requestsReceived: number;
}

const ASK_EVERY_MS = 20;

/** A slower answer may be out of date when it arrives: it is not judged. */
const FRESH_MS = 300;

/**
 * Asks the gateways again and again which replicas are safe to stop, and compares the answers with the facts of the
 * replicas. `factsOf`: null while the replica is down.
 */
export function watchSafety(
  adminUrls: readonly string[],
  factsOf: (replica: string) => ReplicaFacts | null,
): { stop(): Promise<SafetyReport> } {
  const falseAnswers: string[] = [];
  let saidSafe = 0;
  let isStopped = false;

  /** `receivedBefore`: by replica, the requests it had received at this gateway's previous answer, if that was "safe". */
  async function ask(adminUrl: string, receivedBefore: Map<string, number>): Promise<void> {
    const askedAtMs = performance.now();
    const safe = await readSafeToStop(adminUrl);
    if (performance.now() - askedAtMs > FRESH_MS) return;
    for (const replica of receivedBefore.keys()) if (!safe.includes(replica)) receivedBefore.delete(replica);
    for (const replica of safe) {
      saidSafe++;
      const { openRequests, requestsReceived } = factsOf(replica) ?? { openRequests: 0, requestsReceived: 0 };
      const received = requestsReceived - (receivedBefore.get(replica) ?? requestsReceived);
      if (openRequests > 0 || received > 0) {
        falseAnswers.push(
          `${adminUrl} called ${replica} safe to stop: ${openRequests} requests open, ${received} new`,
        );
      }
      receivedBefore.set(replica, requestsReceived);
    }
  }

  async function watch(adminUrl: string): Promise<void> {
    const receivedBefore = new Map<string, number>();
    while (!isStopped) {
      await ask(adminUrl, receivedBefore);
      await sleep(ASK_EVERY_MS);
    }
  }

  const watching = Promise.all(adminUrls.map(watch));
  return {
    async stop() {
      isStopped = true;
      await watching;
      return { saidSafe, falseAnswers };
    },
  };
}
