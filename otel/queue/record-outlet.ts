/** Where the records of one thread go, and where each that begins is accounted for. Never throws. */
export interface RecordOutlet {
  /** A request has begun that will be a record. */
  begin(): void;
  /** It turned out to be none. */
  discard(): void;
  /**
   * It has ended: its line enters the queue, or is dropped and counted if that is full. The line is good during the
   * call only.
   */
  put(line: Uint8Array): void;
  /** It has ended, but could not be encoded. */
  refuse(): void;
}
