/** How fresh the list of the replicas behind a name is. */
export interface SourceState {
  /** The entry of the configuration. */
  readonly name: string;
  readonly kind: 'kubernetes' | 'dns';
  /** Why it is not followed now: the code of the failure; null: it is followed. */
  readonly failure: string | null;
  /** Since when, in RFC 3339; null while it is followed. */
  readonly since: string | null;
  /** The servers that are known; null if they were never found. */
  readonly endpoints: number | null;
}

/** A failure that goes on. */
export interface SourceFailure {
  readonly code: string;
  /** When it began, in RFC 3339. */
  readonly since: string;
}
