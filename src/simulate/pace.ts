import type { Stage } from './scenes.ts';
import type { SimulatedReplicaCollaborators } from './settings.ts';

/** Decides when each token of an answer is due. */
export interface Pace {
  /** Waits for the first token. The cached share of the prompt, 0 to 1, makes the wait shorter. */
  untilFirst(cachedShare: number): Promise<void>;
  /** Waits for the next `tokens` tokens. */
  untilNext(tokens: number): Promise<void>;
}

/** Share of the prefill time that a cached prefix saves at most: scheduling and the first decode step remain. */
const CACHED_PREFILL_SAVING = 0.8;

/**
 * Waits for due times instead of sleeping one gap after the other: late timers do not add up, and after a pause a slow
 * client gets all tokens that are due, as from a real engine.
 */
export function createPace(
  settings: { readonly ttftMs: number; readonly gapMs: number },
  { random, now, sleep }: Pick<SimulatedReplicaCollaborators, 'random' | 'now' | 'sleep'>,
  signal: AbortSignal,
  stage: Pick<Stage, 'scene' | 'untilThawed'>,
): Pace {
  let dueAtMs = now();
  const untilDue = async (): Promise<void> => {
    const waitMs = dueAtMs - now();
    if (waitMs > 0) await sleep(waitMs, signal);
  };
  const untilThawed = async (): Promise<void> => {
    if (stage.scene === 'frozen') await stage.untilThawed(signal);
  };
  return {
    async untilFirst(cachedShare) {
      if (settings.ttftMs === 0) return await untilThawed();
      dueAtMs += jittered(settings.ttftMs * (1 - CACHED_PREFILL_SAVING * cachedShare), random);
      await untilDue();
      await untilThawed();
    },
    async untilNext(tokens) {
      if (settings.gapMs === 0) return await untilThawed();
      for (let token = 0; token < tokens; token += 1) dueAtMs += jittered(settings.gapMs, random);
      await untilDue();
      await untilThawed();
    },
  };
}

/**
 * A shifted exponential distribution with the given mean: never below 80% of it, the 95th percentile at 140%, a long
 * tail.
 */
function jittered(meanMs: number, random: () => number): number {
  return meanMs * (0.8 - 0.2 * Math.log(1 - random()));
}
