import type { Stage } from './stage.ts';

/** One promise of the documents, tried on a real control plane. */
export interface Scene {
  readonly id: string;
  /** What must hold: a sentence. */
  readonly promise: string;
  /** Not part of `--fast`. */
  readonly isSlow?: boolean;
  /** What scripts/kubernetes/build.sh builds for it. */
  readonly part?: string;
  /** Tries it. Returns what was seen, as a phrase with figures. Rejects if the promise does not hold. */
  play(stage: Stage): Promise<string>;
}

/** @throws {Error} if it does not hold */
export function ensure(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

/** Milliseconds as seconds. */
export function toSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
