import type { HttpFacts } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import type { ParkedSpan } from '#otel/span';

/**
 * A response that its replica goes on with after its answer, as the thread that served the request hands it over. Plain
 * data without any text.
 */
export interface BackgroundResponse {
  /** The index of that thread's worker. */
  readonly worker: number;
  /** The slot of the replica. */
  readonly slot: number;
  /** What the engine calls the response; null: the client left before the gateway learned it. */
  readonly id: string | null;
  readonly record: RequestRecord;
  readonly http: HttpFacts;
  readonly span: ParkedSpan;
  /** Where in shared memory the use of its client, and of its tenant, is counted. */
  readonly limitRows: readonly number[];
  /** What they were charged for it. */
  readonly chargedTokens: number;
}
