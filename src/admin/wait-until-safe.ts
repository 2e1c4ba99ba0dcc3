import { setTimeout as sleep } from 'node:timers/promises';

/** How long an end may go unnoticed. Whoever waits pays for the looking; the requests that end do not. */
const LOOK_EVERY_MS = 50;

/** What a wait looks at: a replica of the registry. */
interface DrainedReplica {
  readonly drain: { readonly drained: boolean };
  readonly isSafeToStop: boolean | null;
}

/**
 * Resolves when the replica is safe to stop, when it never will be since it was undrained, when the time is up or
 * when whoever waits has left. The replica tells which.
 */
export async function waitUntilSafe(
  replica: DrainedReplica,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (replica.drain.drained && replica.isSafeToStop !== true && !signal.aborted) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) return;
    // An abort is seen at the top.
    await sleep(Math.min(LOOK_EVERY_MS, leftMs), undefined, { signal }).catch(() => undefined);
  }
}
