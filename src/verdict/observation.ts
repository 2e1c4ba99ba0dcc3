/** What became of an attempt, as far as the replica is concerned. */
type Outcome = 'ok' | 'error' | 'unclear';

/** The facts of one attempt at a replica that a comparison uses. Null: unknown. No text, and nothing about who sent it. */
export interface Observation {
  readonly replica: string;
  readonly model: string | null;
  readonly endpoint: string;
  /** Whether the answer was a stream: false where the replica failed before it. */
  readonly stream: boolean;
  /** Tokens of the prompt, or a quarter of its characters where the engine counts none. */
  readonly promptTokens: number | null;
  /** Those of them that the engine took from its cache. */
  readonly cachedTokens: number | null;
  readonly completionTokens: number | null;
  /** The limit of the completion that the client has set. */
  readonly maxTokens: number | null;
  /** This and `e2eMs` without what went before the attempt. */
  readonly ttftMs: number | null;
  /** The median gap between events with output. */
  readonly gapMs: number | null;
  readonly e2eMs: number;
  /** `error`: a 5xx status, an error event, or a response that broke off. `unclear`: the client is to blame, or left. */
  readonly outcome: Outcome;
  /** The finish reason of the first choice. */
  readonly finish: string | null;
}

/** Requests that ended at about the same time: those of the replica that is judged, and those of its peers. */
export interface Block {
  readonly own: readonly Observation[];
  readonly peers: readonly Observation[];
}
