/** What the recorded values of one series come to. */
export interface Cell<Value> {
  /** Takes a value that is finite and not negative, in the unit of the metric. */
  record(value: number): void;
  /** The values until now; a copy, so that a slow exporter sends what belongs together. */
  toValue(): Value;
}

/** A distribution as the SDK's HistogramMetricData has it, without extremes: they could only be those of all time. */
export interface Distribution {
  readonly buckets: { readonly boundaries: number[]; readonly counts: number[] };
  readonly sum: number;
  readonly count: number;
}

/** The sum of the values. */
export class SumCell implements Cell<number> {
  #sum = 0;

  record(value: number): void {
    this.#sum += value;
  }

  toValue(): number {
    return this.#sum;
  }
}

/** The values counted by size, with their sum. */
export class HistogramCell implements Cell<Distribution> {
  readonly #boundaries: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;

  /** `boundaries`: the upper bounds of all buckets but the last, ascending; a bound belongs to its bucket. */
  constructor(boundaries: readonly number[]) {
    this.#boundaries = boundaries;
    this.#counts = new Array<number>(boundaries.length + 1).fill(0);
  }

  record(value: number): void {
    const found = this.#boundaries.findIndex((boundary) => value <= boundary);
    const bucket = found === -1 ? this.#boundaries.length : found;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#count += 1;
    this.#sum += value;
  }

  toValue(): Distribution {
    const buckets = { boundaries: [...this.#boundaries], counts: [...this.#counts] };
    return { buckets, sum: this.#sum, count: this.#count };
  }
}
