import { decodeRecord } from '#otel/otlp';
import type { RecordLedger } from './numbered-ledger.ts';

/** Numbers from `first` to `last` whose records are not, or will not be, where records are exported to. */
export interface RecordLoss {
  readonly instance: string;
  readonly first: number;
  readonly last: number;
  /** As the ledger declares it. */
  readonly why: 'dropped' | 'lost' | 'unencodable' | 'rejected';
  /** Whether the record was heard of as one that has ended; otherwise nobody knows whose it was. */
  readonly isKnown: boolean;
}

/** A ledger that also tells of each loss when it is known, whether there are ledger spans or not. */
export function tellLosses(ledger: RecordLedger, onLoss: (loss: RecordLoss) => void): RecordLedger {
  const lastSeqs = new LastSeqs();
  const reach = (instance: string, seq: number): void => {
    const before = lastSeqs.reach(instance, seq);
    // A worker that has no place in the queue may not even send the record.
    if (seq > before + 1)
      onLoss({ instance, first: before + 1, last: seq - 1, why: 'dropped', isKnown: false });
  };
  return {
    queued(record, encodedSpan) {
      ledger.queued(record, encodedSpan);
      const { instance, seq } = record;
      if (instance !== undefined && seq !== undefined) reach(instance, seq);
    },
    notQueued(record, why) {
      ledger.notQueued(record, why);
      const { instance, seq } = record;
      if (instance === undefined || seq === undefined) return;
      reach(instance, seq);
      onLoss({ instance, first: seq, last: seq, why, isKnown: why === 'dropped' });
    },
    rejected(encodedSpans) {
      ledger.rejected(encodedSpans);
      for (const encodedSpan of encodedSpans) {
        const { instance, seq } = decodeRecord(encodedSpan) ?? {};
        if (instance === undefined || seq === undefined) continue;
        onLoss({ instance, first: seq, last: seq, why: 'rejected', isKnown: true });
      }
    },
    instanceEnded(instance, begun) {
      ledger.instanceEnded(instance, begun);
      const last = lastSeqs.end(instance);
      const count = (begun - last) >>> 0;
      if (count > 0) onLoss({ instance, first: last + 1, last: last + count, why: 'lost', isKnown: false });
    },
    end: () => ledger.end(),
  };
}

/** The last number of each instance that was heard of. */
class LastSeqs {
  readonly #byInstance = new Map<string, { last: number }>();
  /** Most records are of the same instance as the one before. */
  #latest = { instance: '', seq: { last: 0 } };

  /** Returns the last number before this one. */
  reach(instance: string, seq: number): number {
    if (this.#latest.instance !== instance) this.#latest = { instance, seq: this.#of(instance) };
    const { seq: known } = this.#latest;
    const before = known.last;
    known.last = seq;
    return before;
  }

  /** Forgets an instance. Returns its last number; 0 if it had none. */
  end(instance: string): number {
    const last = this.#byInstance.get(instance)?.last ?? 0;
    this.#byInstance.delete(instance);
    this.#latest = { instance: '', seq: { last: 0 } };
    return last;
  }

  #of(instance: string): { last: number } {
    const known = this.#byInstance.get(instance);
    if (known !== undefined) return known;
    const first = { last: 0 };
    this.#byInstance.set(instance, first);
    return first;
  }
}
