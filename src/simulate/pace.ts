import type { SimulatedReplicaCollaborators } from './settings.ts';

/** The rhythm of one answer: when each token is due. */
export interface Pace {
  /** Waits for the first token; a cached share of the prompt (0 to 1) need not be run again. */
  untilFirst(cachedShare: number): Promise<void>;
  /** Waits for the next `tokens` tokens. */
  untilNext(tokens: number): Promise<void>;
}

/** Prefill that a cached prefix saves, at most: scheduling and the first decode step remain. */
const CACHED_PREFILL_SAVING = 0.8;

/**
 * Paces by due times, not by sleeping a gap at a time: late timers do not add up, and a client that read
 * slowly finds the tokens it missed waiting, as with a real engine.
 */
export function createPace(
  settings: { readonly ttftMs: number; readonly gapMs: number },
  { random, now, sleep }: Pick<SimulatedReplicaCollaborators, 'random' | 'now' | 'sleep'>,
  signal: AbortSignal,
): Pace {
  let dueAtMs = now();
  const untilDue = async (): Promise<void> => {
    const waitMs = dueAtMs - now();
    if (waitMs > 0) await sleep(waitMs, signal);
  };
  return {
    async untilFirst(cachedShare) {
      if (settings.ttftMs === 0) return;
      dueAtMs += jittered(settings.ttftMs * (1 - CACHED_PREFILL_SAVING * cachedShare), random);
      await untilDue();
    },
    async untilNext(tokens) {
      if (settings.gapMs === 0) return;
      for (let token = 0; token < tokens; token += 1) dueAtMs += jittered(settings.gapMs, random);
      await untilDue();
    },
  };
}

/**
 * Shifted exponential with the given mean: never under 80 % of it, the 95th percentile at 140 %, a thin
 * long tail.
 */
function jittered(meanMs: number, random: () => number): number {
  return meanMs * (0.8 - 0.2 * Math.log(1 - random()));
}
