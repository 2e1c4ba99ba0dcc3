/** An attempt that did not serve the request. On the wire it is an event of the request's span. */
export interface FailedAttempt {
  /** The name of the replica. */
  readonly replica: string;
  /** Why it failed: a code such as `not_connected`. */
  readonly failure: string;
  /** What the replica answered; null if it did not. */
  readonly status: number | null;
  /** From the choice of the replica to the failure. */
  readonly duration_ms: number;
  /** From the arrival of the request to the failure. */
  readonly after_ms: number;
}
