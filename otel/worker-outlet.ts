import type { RecordLedger } from './record-ledger.ts';
import type { RecordOutlet } from './record-outlet.ts';

/** Records in one piece of memory, which can go to another thread without a copy. */
export interface PackedRecords {
  /** Their lines, one after the other: first those that have a place in the queue. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** How long each line is. */
  readonly lengths: readonly number[];
  /** How many of them have a place. */
  readonly queuedCount: number;
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
 * The outlet of a thread that is not the queue's. A record takes its place at once, and goes with all others that
 * end in the same turn of the event loop: a message costs as much as encoding a record does.
 */
export class WorkerOutlet implements RecordOutlet {
  readonly #with: WorkerOutletSettings;
  #queued: Uint8Array[] = [];
  #dropped: Uint8Array[] = [];

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
    if (ledger.takePlace(worker, line.length)) this.#keep(this.#queued, line);
    else {
      ledger.countDropped(worker);
      if (ledger.takeUnqueued(worker)) this.#keep(this.#dropped, line);
    }
    ledger.end(worker);
  }

  refuse(): void {
    const { ledger, worker } = this.#with;
    ledger.countUnencodable(worker);
    ledger.end(worker);
  }

  /** Sends what has ended up to now. */
  flush(): void {
    if (this.#queued.length === 0 && this.#dropped.length === 0) return;
    const lines = [...this.#queued, ...this.#dropped];
    const packed = { ...pack(lines), queuedCount: this.#queued.length };
    this.#queued = [];
    this.#dropped = [];
    this.#with.post(packed);
  }

  #keep(lines: Uint8Array[], line: Uint8Array): void {
    if (this.#queued.length === 0 && this.#dropped.length === 0) setImmediate(() => this.flush());
    lines.push(line);
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

/** The lines again, as views of the memory that they came in. */
export function unpack({ bytes, lengths, queuedCount }: PackedRecords): {
  readonly queued: readonly Uint8Array[];
  readonly dropped: readonly Uint8Array[];
} {
  let at = 0;
  const lines = lengths.map((length) => {
    at += length;
    return bytes.subarray(at - length, at);
  });
  return { queued: lines.slice(0, queuedCount), dropped: lines.slice(queuedCount) };
}
