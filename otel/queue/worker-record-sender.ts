import { RecordDecoder } from '#otel/otlp';
import type { SharedQueueState } from '#otel/queue/shared';
import type { RequestRecord } from '#otel/record/registry';
import type { EndedRecord, RecordConsumer } from './record-consumer.ts';

/**
 * How long a record waits to be sent with others. A message costs as much as encoding a record (6 µs in each thread,
 * Node 26.10), and most turns of the event loop end a single request.
 */
const GATHER_MS = 5;
/** This many records are sent at once. */
const MAX_GATHERED = 64;

/** Several records as one message, whose memory moves to the other thread without a copy. */
export interface PackedRecords {
  /** The encoded spans, one after the other. The receiver reads the records from them. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /**
   * The length of each; 0 for one that could not be encoded. It is negative if the record has no reservation: it is sent for
   * the observers of records alone.
   */
  readonly lengths: readonly number[];
  /** The records that could not be encoded, in their order. */
  readonly unencodable: readonly Readonly<RequestRecord>[];
}

/** A record that a worker has sent. */
interface SentRecord extends EndedRecord {
  /** Whether the record has a reservation in the queue. */
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
  #spans: Uint8Array[] = [];
  #lengths: number[] = [];
  #unencodable: Readonly<RequestRecord>[] = [];
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
    if (this.#lengths.length === 0) return;
    const records = { bytes: join(this.#spans), lengths: this.#lengths, unencodable: this.#unencodable };
    this.#spans = [];
    this.#lengths = [];
    this.#unencodable = [];
    this.#collaborators.post(records);
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
    if (encodedSpan === null) this.#unencodable.push(record);
    else this.#spans.push(Buffer.from(encodedSpan));
    const length = encodedSpan?.length ?? 0;
    this.#lengths.push(isQueued ? length : -length);
    if (this.#lengths.length >= MAX_GATHERED) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }
}

/** Copies the spans out of Node's shared buffer pool into memory that can be transferred. */
function join(spans: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(spans.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const span of spans) {
    bytes.set(span, at);
    at += span.length;
  }
  return bytes;
}

/** The records of a message. Their encoded spans are views of its memory. */
export function unpackRecords({ bytes, lengths, unencodable }: PackedRecords): readonly SentRecord[] {
  const decoder = new RecordDecoder(bytes);
  const others = unencodable.values();
  let at = 0;
  return lengths.map((length) => {
    const start = at;
    at += Math.abs(length);
    const encodedSpan = length === 0 ? null : bytes.subarray(start, at);
    const record = encodedSpan === null ? others.next().value : decoder.decode(start, at);
    if (record == null) throw new Error('a worker has sent what is no record');
    return { record, encodedSpan, isQueued: length > 0 };
  });
}
