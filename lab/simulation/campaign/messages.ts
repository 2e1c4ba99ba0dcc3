/** Seeds that a process is to run. */
export interface Block {
  readonly seeds: readonly number[];
}

/** What became of a block. It ends with its first violation. */
export interface BlockResult {
  /** The first and the last seed that were run. */
  readonly from: number;
  readonly to: number;
  readonly seeds: number;
  readonly steps: number;
  readonly requests: number;
  readonly records: number;
  readonly simulatedMs: number;
  /** What it cost: the time of all cores. */
  readonly cpuMs: number;
  readonly finding: { readonly seed: number; readonly text: string } | null;
}
