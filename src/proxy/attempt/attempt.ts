import type { TraceContextFields } from '#otel/span';
import type { Replica } from '#replicas';
import type { ResponseHandler } from '#wire/upstream';
import type { Exchange } from '../exchange.ts';
import type { FailureCode } from '../failure.ts';
import type { RelayedResponse } from '../response/relay.ts';
import type { ResponseUse } from '../response/response-reading.ts';
import type { AnswerListener } from './copying.ts';
import type { Upload } from './upload.ts';

/** How one attempt ended. */
export type AttemptOutcome =
  /** A response was relayed, completely or up to a break: the exchange is decided. */
  | { readonly kind: 'relayed'; readonly statusCode: number }
  /** Drained before the request was written: nothing was sent. */
  | { readonly kind: 'drained' }
  /** Refused, unresolved, timed out or untrusted: nothing was sent. */
  | { readonly kind: 'not_connected'; readonly cause: unknown }
  /**
   * The replica does not take the request now: its engine is loading its model, or it answered a status of
   * `retry.statuses`. `relayAnswer` relays its answer, in case no other replica takes the request.
   */
  | {
      readonly kind: 'loading' | 'status_retried';
      readonly statusCode: number;
      readonly relayAnswer: () => void;
    }
  /** A reused keep-alive connection was reset before the first response byte. */
  | { readonly kind: 'reset_on_reuse'; readonly cause: unknown }
  /** The replica refused the stream options that we inserted. */
  | { readonly kind: 'usage_refused'; readonly statusCode: number }
  | { readonly kind: 'failed'; readonly code: FailureCode; readonly cause: unknown }
  /** The client left, or the exchange was cut, before a response began. */
  | { readonly kind: 'abandoned' };

/** What a response streams if it is a stream. */
export type RunningStream = NonNullable<ResponseHandler['stream']>;

/** One request to one replica. */
export interface AttemptRequest extends ResponseUse {
  readonly replica: Replica;
  readonly exchange: Exchange;
  readonly trace: TraceContextFields;
  /** The pieces of the body, in order; null: a request without one. Set to null when they are written. */
  body: readonly Buffer[] | null;
  /** The body, if it is sent as it comes: then `body` is null, and `onFreshConnection` true, since it is sent once. */
  readonly upload: Upload | null;
  /** Use a connection that was never used before. */
  readonly onFreshConnection: boolean;
  /** Whether the request may have to be sent again although it was written. */
  readonly mayRepeat: boolean;
  /** Whether another replica may be tried because of the status that this one answers. */
  readonly mayRetryStatus: boolean;
  /** What the response streams if it is a stream; null: nothing is known of like ones. */
  readonly stream: RunningStream | null;
  /** Whether it asks for a stream. */
  readonly asksStream: boolean;
  /** Told of the progress; null: nobody is. */
  readonly observer: AttemptObserver | null;
}

/** Receives the progress of attempts. */
export interface AttemptObserver {
  /** The system has taken all of the request. `isReused`: on a connection that may turn out dead. */
  onWritten(attempt: AttemptRequest, isReused: boolean): void;
  /** The request is written. Returns who hears the answer beside the relay; null: nobody. */
  onSent?(attempt: AttemptRequest, body: readonly Buffer[], sentMs: number): AnswerListener | null;
  /** The replica's response begins to go to the client. */
  onResponse(attempt: AttemptRequest, response: RelayedResponse): void;
}
