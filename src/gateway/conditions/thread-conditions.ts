import type { Finding, Producer } from '#conditions';

/** How long the event loop of a thread was active and idle since the thread started. */
interface LoopTime {
  readonly thread: string;
  readonly activeMs: number;
  readonly idleMs: number;
}

/** The share of the time from which a thread counts as busy, and the time over which it is measured. */
const BUSY = 0.9;
const WINDOW_MS = 5_000;
/** Between two measurements. */
const INTERVAL_MS = 500;

/** Threads that are busy all the time. `nowMs`: monotonic milliseconds. */
export function createThreadProducer(times: () => readonly LoopTime[], nowMs: () => number): Producer {
  /** What was measured in the last window, oldest first. */
  let samples: { readonly atMs: number; readonly times: readonly LoopTime[] }[] = [];
  return function* (): Generator<Finding> {
    const atMs = nowMs();
    if (atMs - (samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) >= INTERVAL_MS)
      samples = [...samples, { atMs, times: times() }];
    // The oldest is at least a window old.
    while (atMs - (samples[1]?.atMs ?? atMs) >= WINDOW_MS) samples.shift();
    const oldest = samples[0];
    if (oldest === undefined || atMs - oldest.atMs < WINDOW_MS) return;
    for (const { thread, activeMs, idleMs } of samples.at(-1)?.times ?? []) {
      const before = oldest.times.find((each) => each.thread === thread);
      // A new thread of the same name has been active for less than the former one.
      if (before === undefined || activeMs < before.activeMs || idleMs < before.idleMs) continue;
      const active = activeMs - before.activeMs;
      const busy = active / (active + idleMs - before.idleMs);
      if (busy > BUSY) yield { id: 'event_loop_behind', subject: thread, figures: { busy } };
    }
  };
}
