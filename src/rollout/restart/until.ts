import { setTimeout as sleep } from 'node:timers/promises';
import type { StopKind } from '#rollout-board/facts';
import { RolloutStop } from '../stop.ts';

/** How long something is waited for. */
export interface Patience {
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** What it is if that takes too long. */
  readonly lateKind: StopKind;
}

/** Asks again and again until the answer is yes. Throws a RolloutStop if that takes too long, or the signal aborts. */
export async function until(
  isMet: () => Promise<boolean> | boolean,
  { everyMs, timeoutMs, signal, lateKind }: Patience,
  toProblem: () => string,
): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!(await isMet())) {
    if (signal.aborted) throw new RolloutStop('interrupted', 'is drained; the wait for it was interrupted');
    if (performance.now() >= endMs) throw new RolloutStop(lateKind, toProblem());
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
  }
}
