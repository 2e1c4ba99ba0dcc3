/** What a request says of itself, and is no field of its record: no text but names that the operator asks for. */
export interface RequestNotes {
  /** Undefined: it has none of them. */
  readonly parameters?: RequestParameters | undefined;
  /** Undefined: the configuration names no header for them, or the request has none. */
  readonly names?: RequestNames | undefined;
}

/** The parameters of a request that are no text, as the client wrote them. */
export interface RequestParameters {
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly presencePenalty?: number | undefined;
  /** A safe integer. */
  readonly seed?: number | undefined;
  /** Undefined: one. */
  readonly choiceCount?: number | undefined;
  /** One of the conventions' own words, never the client's. */
  readonly outputType?: 'text' | 'json' | undefined;
}

/** Names in the headers that the configuration names. */
export interface RequestNames {
  readonly user?: string | undefined;
  readonly session?: string | undefined;
  readonly agent?: string | undefined;
  readonly prompt?: string | undefined;
  readonly promptVersion?: string | undefined;
}
