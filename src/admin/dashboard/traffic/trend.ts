import { HISTORY_SLICES } from './slices.ts';

/** Two counts for each complete slice of the last five minutes, oldest first. */
export interface TrendFigures {
  readonly attempts: readonly number[];
  readonly errors: readonly number[];
}

/** The attempts at a replica and its errors of the last five minutes in 480 bytes. Slices are given in ascending order. */
export class Trend {
  readonly #attempts = new Uint32Array(HISTORY_SLICES);
  readonly #errors = new Uint32Array(HISTORY_SLICES);
  #newest = -1;

  /** Takes the counts of a slice that has ended. */
  endSlice(slice: number, counts: { readonly attempts: number; readonly errors: number }): void {
    const skipped = Math.min(slice - this.#newest, HISTORY_SLICES);
    for (let back = 1; back < skipped; back++) this.#write(slice - back, { attempts: 0, errors: 0 });
    this.#write(slice, counts);
    this.#newest = slice;
  }

  /** The counts of the slices before `current`. */
  figures(current: number): TrendFigures {
    const first = current - HISTORY_SLICES;
    return { attempts: this.#read(this.#attempts, first), errors: this.#read(this.#errors, first) };
  }

  #read(counts: Uint32Array, first: number): readonly number[] {
    const read: number[] = [];
    for (let slice = first; slice < first + HISTORY_SLICES; slice++) {
      const isKept = slice >= 0 && slice <= this.#newest;
      read.push(isKept ? (counts[slice % HISTORY_SLICES] ?? 0) : 0);
    }
    return read;
  }

  #write(slice: number, { attempts, errors }: { readonly attempts: number; readonly errors: number }): void {
    if (slice < 0) return;
    this.#attempts[slice % HISTORY_SLICES] = attempts;
    this.#errors[slice % HISTORY_SLICES] = errors;
  }
}
