import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminClient, UnreachableError } from './client.ts';

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 5_000;

/** One drain or undrain. */
export interface DrainCall {
  readonly name: string;
  readonly action: 'drain' | 'undrain';
  readonly reason?: string | undefined;
  readonly unlessLast?: boolean | undefined;
  /** Of an undrain: a duration such as `60s`. */
  readonly ramp?: string | undefined;
}

/** How a call is repeated while the gateway does not answer. */
interface RetryPolicy {
  readonly maxMs: number;
  /** Stops the retries. */
  readonly signal: AbortSignal;
  /** Called before each retry. */
  readonly onRetry: () => void;
}

/** Drains or undrains a replica. Both are idempotent, so `retry` may repeat a call that got no answer. */
export async function callDrain(
  client: AdminClient,
  { name, action, reason, unlessLast = false, ramp }: DrainCall,
  retry: RetryPolicy | null,
): Promise<unknown> {
  const query = new URLSearchParams({
    ...(reason === undefined ? {} : { reason }),
    ...(unlessLast ? { unless_last: 'true' } : {}),
    ...(ramp === undefined ? {} : { ramp }),
  });
  const path = `/admin/replicas/${encodeURIComponent(name)}/${action}`;
  const call = () => client.call('POST', query.size === 0 ? path : `${path}?${query}`, retry?.signal);
  return retry === null ? await call() : await withRetries(call, retry);
}

async function withRetries<T>(call: () => Promise<T>, { maxMs, signal, onRetry }: RetryPolicy): Promise<T> {
  const endMs = performance.now() + maxMs;
  for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(2 * delayMs, LONGEST_DELAY_MS)) {
    try {
      return await call();
    } catch (error) {
      const leftMs = endMs - performance.now();
      if (!(error instanceof UnreachableError) || signal.aborted || leftMs <= 0) throw error;
      onRetry();
      await sleep(Math.min(delayMs, leftMs), undefined, { signal }).catch(() => undefined);
    }
  }
}
