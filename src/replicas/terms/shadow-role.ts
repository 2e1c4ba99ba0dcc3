/** How a replica is a shadow: copies of live requests go to it, and no client gets an answer of it. */
export interface ShadowRole {
  /** The share of the requests of its models of which it gets copies; null: as configured for all. */
  readonly share: number | null;
  /** Whether it gets them although it is drained: it is tried before it serves. */
  readonly ignoresDrain: boolean;
}
