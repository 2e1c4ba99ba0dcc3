/** How many responses a server goes on with after its answers. */
export interface BackgroundCount {
  /** Those that it was said to go on with by the last answer. */
  readonly running: number;
  /** Those of which it is not known whether they have ended. */
  readonly unknown: number;
}

/** A server that goes on with nothing. */
export const NO_BACKGROUND: BackgroundCount = { running: 0, unknown: 0 };

/** Both counts together. */
export function addBackground(a: BackgroundCount, b: BackgroundCount): BackgroundCount {
  return { running: a.running + b.running, unknown: a.unknown + b.unknown };
}
