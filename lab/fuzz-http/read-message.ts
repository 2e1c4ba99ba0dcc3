/** Which side of a connection is read. */
export type Side = 'request' | 'response';

/** A connection as it is read: the bytes of one direction, and what they answer. */
export interface Input {
  readonly side: Side;
  readonly bytes: Buffer;
  /** Of responses: the methods of the requests that they answer, in turn. */
  readonly methods: readonly string[];
  /** Where the reads end, in order; the last one is the end of the bytes. */
  readonly cuts: readonly number[];
}

/** What a parser made of one message. Text is latin-1. */
export interface ReadMessage {
  /** Method, target and version, or version, status and reason. */
  readonly start: string;
  /** Names and values in turn. */
  readonly fields: readonly string[];
  readonly keepsAlive: boolean;
  body: string;
  trailers: readonly string[];
  /** Whether it came to its end. */
  isWhole: boolean;
  /** Whether what follows is another protocol: llhttp reads no further then. */
  readonly isUpgrade: boolean;
  /** The offset behind its last byte, where the parser tells. */
  endOffset: number;
}

/** What a parser made of the bytes of a connection. */
export interface Reading {
  readonly messages: readonly ReadMessage[];
  /** Whether it refused what came, or rather what came after the messages. */
  readonly isRefused: boolean;
  /** How many bytes it took. */
  readonly readBytes: number;
}

/** The start of a request, to be compared. */
export function toRequestStart(method: string, target: string, minorVersion: number): string {
  return `${method} ${target} 1.${minorVersion}`;
}

/** The start of a response, to be compared. */
export function toResponseStart(minorVersion: number, status: number, reason: string): string {
  return `1.${minorVersion} ${status} ${reason}`;
}
