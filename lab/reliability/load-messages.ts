/** How many requests are under way at a time, half of them streams. */
export const CONCURRENCY = 8;

/** One of the two gateways that take turns. */
export interface Side {
  readonly name: 'healthy' | 'faulty';
  readonly url: string;
  readonly adminUrl: string;
}

/** Start fresh replicas for both sides, with so much time between two tokens; answered with {@link Replicas}. */
export interface ReplicasJob {
  readonly kind: 'replicas';
  readonly gapMs: number;
}

/** Send requests to both sides in turn; answered with {@link LoadResult}. */
export interface LoadJob {
  readonly kind: 'load';
  readonly sides: readonly Side[];
  /** To each side. */
  readonly requests: number;
  /** What happens to the faulty side's replica `a` after half of the requests. */
  readonly midway?: 'kill' | 'drain' | undefined;
  readonly adminToken: string;
}

/** What the load process is told: each message has one answer. */
export type LoadMessage = ReplicasJob | LoadJob;

/** By side: the names and addresses of its replicas. */
export type Replicas = Readonly<
  Record<Side['name'], readonly { readonly name: string; readonly url: string }[]>
>;

/** By side: how long each request took, and how many had no whole answer with status 200. */
export type LoadResult = Readonly<
  Record<Side['name'], { readonly latenciesMs: readonly number[]; readonly failed: number }>
>;
