import type { BodySink, Fields, ResponseHead } from '#wire/message';

/** Why a response is incomplete. */
export type UpstreamFault =
  /** The connection was closed or reset. */
  | 'closed'
  /** Nothing arrived in time. */
  | 'timed_out'
  /** The response is not valid HTTP/1.1 (RFC 9112). */
  | 'malformed'
  /** A bug in the gateway: the response handler threw. */
  | 'defect';

/** A response that comes, or is to come, as a stream. */
export interface RunningStream {
  /** What is served, as a number that its owner understands. */
  readonly kind: number;
  /** The size of the request, likewise; null: unknown. It may take a while to find out: ask it of few. */
  readonly size: number | null;
  /** Where it holds a place that others wait for, likewise. */
  readonly holds: readonly number[];
}

/** Handles the response to one request. Nothing is called after `onEnd` or `onFault`. */
export interface ResponseHandler extends BodySink {
  /** What is streamed; null: the response is no stream, as far as that is known. */
  readonly stream: RunningStream | null;
  /** The operating system has accepted the complete request. Not called if the connection closes before that. */
  onWritten(): void;
  onHead(head: ResponseHead, atMs: number): void;
  /** Everything in one read has been passed on, and the response is not complete. */
  onReadEnd(): void;
  /** The response is complete. `onReadEnd` is not called for its last read. */
  onEnd(trailers: Fields): void;
  /** The response is incomplete and the connection is closed. `hasBytes`: whether any byte arrived after the request. */
  onFault(fault: UpstreamFault, cause: unknown, hasBytes: boolean): void;
}

/** One request to send. */
export interface UpstreamRequest {
  readonly method: string;
  /** The request line, the fields and the empty line; latin-1. */
  readonly headText: string;
  /** Null: the body follows, by `writeBody` and `endBody`. */
  readonly body: readonly Buffer[] | null;
  /** The time-out from the end of the request to the head of the response. */
  readonly firstByteMs: number;
  /** The time-out between two reads of the response. */
  readonly idleMs: number;
}
