import type { RequestRecord } from '#otel/record/registry';
import type { EndedRecord, RecordConsumer } from './record-consumer.ts';
import type { SharedQueueState } from './shared-queue-state.ts';

/**
 * How long a record waits to be sent with others. A message costs as much as encoding a record (6 µs in each thread,
 * Node 26.10), and most turns of the event loop end a single request.
 */
const GATHER_MS = 5;
/** This many records are sent at once. */
const MAX_GATHERED = 64;

/** A record on its way from a worker to the queue. */
export interface SentRecord extends EndedRecord {
  /** Whether the record has a reservation in the queue. Without one it is sent for the observers of records alone. */
  readonly isQueued: boolean;
}

/** Several records as one message, whose memory moves to the other thread without a copy. */
export interface PackedRecords {
  /** The encoded spans, one after the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /**
   * A JSON array with a PackedRecord for each record. Decoding a record from its encoded span would cost ten times as
   * much (22 µs per record, not 2).
   */
  readonly json: string;
}

/** A record in the JSON of a message. */
interface PackedRecord {
  readonly record: RequestRecord;
  /** The length of its encoded span; null if there is none. */
  readonly length: number | null;
  readonly isQueued: boolean;
}

/** What the sender works with. */
export interface WorkerRecordSenderCollaborators {
  readonly queueState: SharedQueueState;
  /** The number of this worker, from 0. */
  readonly worker: number;
  /** The `instance` of its records. */
  readonly instance: string;
  /** Sends records to the thread of the queue. */
  readonly post: (records: PackedRecords) => void;
}

/**
 * Sends the records of a worker to the thread of the queue. A record reserves its capacity at once, and is sent with
 * others that end at about the same time.
 */
export class WorkerRecordSender implements RecordConsumer {
  readonly #collaborators: WorkerRecordSenderCollaborators;
  #gathered: SentRecord[] = [];
  #timer: NodeJS.Timeout | null = null;
  #lastSeq = 0;

  constructor(collaborators: WorkerRecordSenderCollaborators) {
    this.#collaborators = collaborators;
  }

  begin(): void {
    const { queueState, worker } = this.#collaborators;
    queueState.begin(worker);
  }

  discard(): void {
    const { queueState, worker } = this.#collaborators;
    queueState.discard(worker);
  }

  number(record: RequestRecord): void {
    record.instance = this.#collaborators.instance;
    record.seq = ++this.#lastSeq;
  }

  consume(ended: EndedRecord): void {
    const { queueState, worker } = this.#collaborators;
    const isQueued = this.#reserve(ended.encodedSpan);
    if (isQueued || queueState.beginUnqueued(worker)) this.#gather(ended, isQueued);
  }

  /** Sends the records of all requests that have ended. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#gathered.length === 0) return;
    const records = this.#gathered;
    this.#gathered = [];
    this.#collaborators.post(pack(records));
  }

  /** Reserves capacity for a record, or counts why it has none. */
  #reserve(encodedSpan: Uint8Array | null): boolean {
    const { queueState, worker } = this.#collaborators;
    if (encodedSpan === null) {
      queueState.countUnencodable(worker);
      return false;
    }
    const isReserved = queueState.reserve(worker, encodedSpan.length);
    if (!isReserved) queueState.countDropped(worker);
    return isReserved;
  }

  #gather({ record, encodedSpan }: EndedRecord, isQueued: boolean): void {
    const copy = encodedSpan === null ? null : Buffer.from(encodedSpan);
    this.#gathered.push({ record, encodedSpan: copy, isQueued });
    if (this.#gathered.length >= MAX_GATHERED) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }
}

/** Copies the spans out of Node's shared buffer pool into memory that can be transferred. */
function pack(records: readonly SentRecord[]): PackedRecords {
  const sizeBytes = records.reduce((sum, { encodedSpan }) => sum + (encodedSpan?.length ?? 0), 0);
  const bytes = new Uint8Array(sizeBytes);
  let at = 0;
  const packed = records.map(({ record, encodedSpan, isQueued }): PackedRecord => {
    if (encodedSpan === null) return { record, length: null, isQueued };
    bytes.set(encodedSpan, at);
    at += encodedSpan.length;
    return { record, length: encodedSpan.length, isQueued };
  });
  return { bytes, json: JSON.stringify(packed) };
}

/** The records of a message. Their encoded spans are views of its memory. */
export function unpackRecords({ bytes, json }: PackedRecords): readonly SentRecord[] {
  const packed: readonly PackedRecord[] = JSON.parse(json);
  let at = 0;
  return packed.map(({ record, length, isQueued }) => {
    if (length === null) return { record, encodedSpan: null, isQueued };
    at += length;
    return { record, encodedSpan: bytes.subarray(at - length, at), isQueued };
  });
}
