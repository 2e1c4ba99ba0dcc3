/** Which side of a connection is read. */
export type Side = 'request' | 'response';

/** The bytes of one direction of a connection, and the requests that they answer. */
export interface Input {
  readonly side: Side;
  readonly bytes: Buffer;
  /** The methods of the requests that responses answer, in turn. */
  readonly methods: readonly string[];
  /** Where the reads end, in order; the last one is the end of the bytes. */
  readonly cuts: readonly number[];
}

/** A message as a parser read it. Text is latin-1. */
export interface ReadMessage {
  /** Method, target and version, or version, status and reason. */
  readonly start: string;
  /** Names and values in turn. */
  readonly fields: readonly string[];
  readonly keepsAlive: boolean;
  body: string;
  trailers: readonly string[];
  /** Whether it is complete. */
  isWhole: boolean;
  /** Whether another protocol follows, so that llhttp stops. */
  readonly isUpgrade: boolean;
  /** The offset after its last byte, if the parser reports it. */
  endOffset: number;
}

/** The messages that a parser read from a connection. */
export interface Reading {
  readonly messages: readonly ReadMessage[];
  /** Whether it refused what came after the messages. */
  readonly isRefused: boolean;
  /** Bytes that it consumed. */
  readonly readBytes: number;
}

/** The start line of a request, for comparisons. */
export function toRequestStart(method: string, target: string, minorVersion: number): string {
  return `${method} ${target} 1.${minorVersion}`;
}

/** The start line of a response, for comparisons. */
export function toResponseStart(minorVersion: number, status: number, reason: string): string {
  return `1.${minorVersion} ${status} ${reason}`;
}
