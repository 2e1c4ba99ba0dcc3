import type { PairObservation } from '#verdict/pairs';
import type { Skip } from './why-not.ts';

/** What the span of a copy says. No text. */
export interface CopySpan {
  readonly traceId: string;
  readonly spanId: string;
  /** The trace context that the primary got. */
  readonly primaryTraceparent: string;
  readonly requestId: string;
  readonly startEpochMs: number;
  readonly durationMs: number;
  readonly shadow: string;
  readonly primary: string;
  readonly model: string;
  readonly endpoint: string;
  /** Null: there was no answer. */
  readonly status: number | null;
  readonly outcome: 'ok' | 'error' | 'cut' | 'not_connected';
  readonly firstTokenMs: number | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly finish: string | null;
  /** Its part of the GPU time of the shadow; null: the replica has no `gpu_count`. */
  readonly gpuSeconds: number | null;
  /** Whether it is the second copy of a request, sent because the outputs differ. */
  readonly isAgain: boolean;
}

/** What copies a worker has ended, and which requests it has not copied, since it last told. */
export interface ShadowReport {
  readonly spans: readonly CopySpan[];
  readonly pairs: readonly PairObservation[];
  readonly skips: readonly { readonly shadow: string; readonly why: Skip; readonly count: number }[];
}
