import type { DiskFault } from '../engine/disk.ts';
import type { AnswerPlan } from './answers.ts';

/** One request of a client. */
export interface RequestPlan {
  /** Names the request in the whole world; the client sends it as its tenant. */
  readonly id: string;
  readonly path: '/v1/chat/completions' | '/v1/completions' | '/v1/embeddings';
  readonly stream: boolean;
  readonly asksUsage: boolean;
  readonly promptChars: number;
  /** The request is written in so many pieces, with pauses between them. */
  readonly pieces: number;
  readonly pieceGapMs: number;
  /** How the replica answers the first attempt, the second … */
  readonly answers: readonly AnswerPlan[];
  /** The client leaves after so many bytes of the response; null: it stays. */
  readonly leavesAfterBytes: number | null;
  readonly leaves: 'reset' | 'close';
  /** It closes its side of the connection after the request. */
  readonly halfCloses: boolean;
}

/** How the collector behaves. */
export type CollectorMode =
  | 'ok'
  | 'down'
  | 'hangs'
  | 'later'
  | 'refuses'
  | 'fails'
  | 'partial'
  | 'cuts'
  | 'too_large'
  | 'slow';

/** Something that happens to the world at a time. */
export type Action = { readonly atMs: number } & (
  | {
      readonly kind: 'client';
      readonly gateway: number;
      /** Sent one after another on one connection, as long as it is kept. */
      readonly requests: readonly RequestPlan[];
      /** The client reads a part, then pauses. */
      readonly pauseMs: number;
    }
  | { readonly kind: 'drain' | 'undrain'; readonly gateway: number; readonly replica: number }
  | { readonly kind: 'look'; readonly gateway: number }
  | { readonly kind: 'reload'; readonly gateway: number; readonly firstByteMs: number }
  | {
      readonly kind: 'replica';
      readonly replica: number;
      readonly to: 'crash' | 'refuse' | 'silent';
      readonly forMs: number;
    }
  | { readonly kind: 'collector'; readonly to: CollectorMode; readonly forMs: number }
  | { readonly kind: 'redis'; readonly to: 'down' | 'hangs' | 'wiped' | 'cut'; readonly forMs: number }
  | { readonly kind: 'disk'; readonly gateway: number; readonly to: DiskFault; readonly forMs: number }
  | { readonly kind: 'stop' | 'kill'; readonly gateway: number; readonly forMs: number }
  | { readonly kind: 'crash_worker'; readonly gateway: number; readonly worker: number }
  | {
      /** The thread ends between two of its steps, without a last word. */
      readonly kind: 'kill_worker';
      readonly gateway: number;
      readonly worker: number;
      /** After so many further steps of its own. */
      readonly afterSteps: number;
    }
  | { readonly kind: 'stall'; readonly gateway: number; readonly worker: number; readonly forMs: number }
  | { readonly kind: 'partition'; readonly gateway: number; readonly forMs: number }
  | { readonly kind: 'cut'; readonly side: 'clients' | 'replicas'; readonly how: 'reset' | 'stall' }
);

/** How all connections of a world behave. */
export interface WeatherPlan {
  readonly latencyMs: readonly [number, number];
  readonly readBytes: number;
  readonly capacityBytes: number;
}

/** All that a seed decides before the world begins. What happens in it is decided by chance from the same seed. */
export interface Plan {
  readonly seed: number;
  readonly gateways: number;
  readonly workers: number;
  readonly replicas: number;
  readonly maxInflight: number | null;
  readonly queueSize: number;
  readonly batchSize: number;
  readonly routing: 'round_robin' | 'least_inflight';
  /** A replica that stops reading each request for a while; null: all read at once. */
  readonly slowReader: { readonly replica: number; readonly pauseMs: number } | null;
  /** Where the records go. */
  readonly exportTo: 'otlp' | 'file';
  /** Whether there are ledger spans (`export.ledger`). */
  readonly hasLedger: boolean;
  readonly weather: WeatherPlan;
  readonly actions: readonly Action[];
}
