import type { ShadowSpan } from '#otel/span';
import type { PairObservation } from '#verdict/pairs';
import type { Skip } from './why-not.ts';

/** What copies a worker has ended, and which requests it has not copied, since it last told. */
export interface ShadowReport {
  readonly spans: readonly ShadowSpan[];
  readonly pairs: readonly PairObservation[];
  readonly skips: readonly { readonly shadow: string; readonly why: Skip; readonly count: number }[];
}
