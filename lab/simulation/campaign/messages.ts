/** Seeds that a process is to run. */
export interface Block {
  readonly seeds: readonly number[];
}

/** What became of a block. It ends with its first violation. */
export interface BlockResult {
  readonly seeds: number;
  readonly steps: number;
  readonly requests: number;
  readonly records: number;
  readonly simulatedMs: number;
  readonly finding: { readonly seed: number; readonly text: string } | null;
}
