/** What one answer of a pair has shown. Null: unknown. */
export interface PairSide {
  /** `unclear`: the request is to blame, or it was cut. */
  readonly outcome: 'ok' | 'error' | 'unclear';
  /** From the moment at which the request was written. */
  readonly firstTokenMs: number | null;
  /** The median gap between events with output. */
  readonly gapMs: number | null;
  readonly durationMs: number;
  readonly completionTokens: number | null;
  /** The finish reason of the first choice. */
  readonly finish: string | null;
  /** Whether it calls tools. `broken`: the arguments of a call are not one JSON object. */
  readonly tools: 'none' | 'called' | 'broken';
  /** Requests in flight at its replica when it was sent, itself included. */
  readonly inflight: number;
}

/** How the outputs of two answers to a request that asks for the same output each time compare. No text. */
export interface OutputComparison {
  readonly isEqual: boolean;
  /** Where they part: so many tokens of the primary's output are the same, about, and so many bytes. Null: nowhere. */
  readonly atToken: number | null;
  readonly atByte: number | null;
  /**
   * Where they part, the shadow was asked once more: whether it gave its first output again, or that of the primary, or
   * another. Null: it was not asked, or did not answer.
   */
  readonly again: 'as_shadow' | 'as_primary' | 'other' | null;
}

/** The answers of a shadow and of a replica that serves to the same request, sent at the same moment. */
export interface PairObservation {
  readonly shadow: string;
  readonly primary: string;
  readonly model: string;
  readonly endpoint: string;
  readonly stream: boolean;
  /** From the moment at which the request was sent until nothing more came of the pair. */
  readonly tookMs: number;
  readonly own: PairSide;
  readonly peer: PairSide;
  /** Whether the calls of tools have the same names and the same members. Null: neither calls any. */
  readonly sameToolCalls: boolean | null;
  /** Null: the request does not ask for the same output each time, or an answer has none. */
  readonly output: OutputComparison | null;
}
