import type { RequestRecord } from '../encode/request-record.ts';
import type { RecordLedger } from './record-ledger.ts';
import type { RecordOutlet } from './record-outlet.ts';

/**
 * How long a record waits for others to go with: a message costs as much as encoding a record does (6 µs here and as
 * much there, Node 26.10), and turns of the event loop that end one request each are the rule.
 */
const GATHER_MS = 5;
/** So many do not wait. */
const MAX_GATHERED = 64;

/** Records in one piece of memory, which can go to another thread without a copy. */
export interface PackedRecords {
  /** Their lines, one after the other: first those that have a place in the queue. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** How long each line is. */
  readonly lengths: readonly number[];
  /** How many of them have a place. */
  readonly queuedCount: number;
  /** The records as a JSON array: to read them from their lines would cost ten times as much (22 µs a record, not 2). */
  readonly json: string;
}

/** What the outlet of a worker works with. */
export interface WorkerOutletSettings {
  readonly ledger: RecordLedger;
  /** Which worker this is, from 0. */
  readonly worker: number;
  /** Sends records to the thread of the queue. */
  readonly post: (records: PackedRecords) => void;
}

/**
 * The outlet of a thread that is not the queue's. A record takes its place at once, and goes with others that end
 * about the same time.
 */
export class WorkerOutlet implements RecordOutlet {
  readonly #with: WorkerOutletSettings;
  #queued: Uint8Array[] = [];
  #dropped: Uint8Array[] = [];
  #records: Readonly<RequestRecord>[] = [];
  #timer: NodeJS.Timeout | null = null;
  /** Whether the record that ended last goes to the other thread. */
  #isSent = false;

  constructor(settings: WorkerOutletSettings) {
    this.#with = settings;
  }

  begin(): void {
    this.#with.ledger.begin(this.#with.worker);
  }

  discard(): void {
    this.#with.ledger.end(this.#with.worker);
  }

  put(line: Uint8Array): void {
    const { ledger, worker } = this.#with;
    const isQueued = ledger.takePlace(worker, line.length);
    if (!isQueued) ledger.countDropped(worker);
    this.#isSent = isQueued || ledger.takeUnqueued(worker);
    if (this.#isSent) (isQueued ? this.#queued : this.#dropped).push(Buffer.from(line));
    ledger.end(worker);
  }

  refuse(): void {
    const { ledger, worker } = this.#with;
    ledger.countUnencodable(worker);
    this.#isSent = false;
    ledger.end(worker);
  }

  /** The record that ended last, for whoever looks at records in the main thread. */
  note(record: Readonly<RequestRecord>): void {
    if (!this.#isSent) return;
    this.#records.push(record);
    if (this.#records.length >= MAX_GATHERED) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }

  /** Sends what has ended up to now. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#records.length === 0) return;
    const queuedCount = this.#queued.length;
    const lines = [...this.#queued, ...this.#dropped];
    const json = JSON.stringify(this.#records);
    this.#queued = [];
    this.#dropped = [];
    this.#records = [];
    this.#with.post({ ...pack(lines), queuedCount, json });
  }
}

/** One copy, out of pools that others use too, so that what is sent can be given away. */
function pack(lines: readonly Uint8Array[]): Pick<PackedRecords, 'bytes' | 'lengths'> {
  const lengths = lines.map(({ length }) => length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const line of lines) {
    bytes.set(line, at);
    at += line.length;
  }
  return { bytes, lengths };
}

/** The lines again, as views of the memory that they came in, and the records. */
export function unpack({ bytes, lengths, queuedCount, json }: PackedRecords): {
  readonly queued: readonly Uint8Array[];
  readonly dropped: readonly Uint8Array[];
  readonly records: readonly RequestRecord[];
} {
  let at = 0;
  const lines = lengths.map((length) => {
    at += length;
    return bytes.subarray(at - length, at);
  });
  const records: readonly RequestRecord[] = JSON.parse(json);
  return { queued: lines.slice(0, queuedCount), dropped: lines.slice(queuedCount), records };
}
