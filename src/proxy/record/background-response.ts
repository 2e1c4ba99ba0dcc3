import type { HeldResponse } from './open-response.ts';

/**
 * A response that its replica goes on with after its answer, as the thread that served the request hands it over. Plain
 * data without any text.
 */
export interface BackgroundResponse extends HeldResponse {
  /** The index of that thread's worker. */
  readonly worker: number;
  /** The slot of the replica. */
  readonly slot: number;
  /** Where in shared memory the use of its client, and of its tenant, is counted. */
  readonly limitRows: readonly number[];
}
