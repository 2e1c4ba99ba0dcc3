import type { RequestRecord } from '#otel/record/registry';

/** The record of a request that has ended, and its encoded span: they travel as one. */
export interface EndedRecord {
  readonly record: Readonly<RequestRecord>;
  /**
   * The span in OTLP protobuf, followed by those of its attempts. Null if it could not be encoded. The memory is reused:
   * a consumer that keeps the bytes copies them.
   */
  readonly encodedSpan: Uint8Array | null;
}

/** Takes the records of one thread, and counts the requests that have begun. Never throws. */
export interface RecordConsumer {
  /** Numbers a record: `instance`, and the next `seq` of it. The record must be consumed next. */
  number(record: RequestRecord): void;
  /** A request has begun that will leave a record. */
  begin(): void;
  /** A request that has begun leaves no record after all. */
  discard(): void;
  /** A request has ended: its record is queued, or dropped and counted if the queue is full. */
  consume(ended: EndedRecord): void;
}
