/** Requests that are open at a time, half of them streams. */
export const CONCURRENCY = 8;

/** One of the two gateways that are loaded in turn. */
export interface Side {
  readonly name: 'healthy' | 'faulty';
  readonly url: string;
}

/** Starts new replicas for both sides; answered with {@link Replicas}. `gapMs`: between two tokens. */
export interface ReplicasJob {
  readonly kind: 'replicas';
  readonly gapMs: number;
}

/** Sends requests to both sides in turn; answered with {@link LoadResult}. */
export interface LoadJob {
  readonly kind: 'load';
  readonly sides: readonly Side[];
  /** Per side. */
  readonly requests: number;
  /** What happens to the replica `a` of the faulty side after half of the requests. */
  readonly midway?: 'kill' | 'drain' | undefined;
  /** Of the faulty side. */
  readonly adminUrl: string;
}

/** A message to the load process, which has one answer. */
export type LoadMessage = ReplicasJob | LoadJob;

/** Names and addresses of the replicas, by side. */
export type Replicas = Readonly<
  Record<Side['name'], readonly { readonly name: string; readonly url: string }[]>
>;

/** The duration of each request, and the number of requests without a whole answer of status 200, by side. */
export type LoadResult = Readonly<
  Record<Side['name'], { readonly latenciesMs: readonly number[]; readonly failed: number }>
>;
