import type { TraceContextFields } from '#otel/span';
import type { Replica } from '#replicas';
import type { ResponseHead } from '#wire/message';
import type { RequestFacts } from '../request/inspection/request-facts.ts';
import type { AnswerReading } from '../response/answer-reader.ts';

/*
 * The one place where others hear of requests that go to replicas, and of their answers, while this happens. They can
 * change nothing of it.
 */

/** How an answer ended: complete; broken off; the client left before its end; the replica did not take the request. */
export type AnswerEnd = 'whole' | 'broken' | 'left' | 'refused';

/** Hears an answer as it comes from its replica. It must not throw. */
export interface AnswerListener {
  onHead(head: ResponseHead, atMs: number): void;
  /** The bytes stay good: nobody overwrites them. */
  onData(view: Buffer): void;
  /** Nothing follows. */
  onOver(end: AnswerEnd): void;
}

/** What a copy is called, and which key it presents. */
export interface CopyIdentity {
  readonly requestId: string;
  readonly trace: TraceContextFields;
}

/** A request that was written to its first replica just now. */
export interface SentRequest {
  readonly replica: Replica;
  /** The model as the replica calls it. */
  readonly model: string;
  /** The body as it was written. The bytes stay good: nobody overwrites them. */
  readonly body: readonly Buffer[];
  readonly facts: Pick<RequestFacts, 'previousResponseId' | 'tools'>;
  /** When it was written: monotonic. */
  readonly sentMs: number;
  /** Whether it had to wait for a replica with room. */
  readonly hasWaited: boolean;
  /** The trace context that the replica got. */
  readonly traceparent: string;
  /** How its answers are read. */
  readonly reading: AnswerReading;
  /** The head of the same request to another replica. Its text may hold a key. */
  toHeadText(replica: Replica, identity: CopyIdentity): string;
}

/** Hears of requests that go to replicas. */
export interface SendListener {
  /** Whether it wants to hear of requests of this model. Asked for each of them. */
  wants(model: string): boolean;
  /** Returns who hears the answer; null: nobody. It must not throw. */
  onSent(sent: SentRequest): AnswerListener | null;
}
