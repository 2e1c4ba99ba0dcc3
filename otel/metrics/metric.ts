import type { Attributes } from '@opentelemetry/api';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import {
  type Distribution,
  type Exemplar,
  type Interval,
  type MetricDefinition,
  type RequestTrace,
  type Series,
  toHistogramData,
  toSumData,
} from './metric-data.ts';

/** The SDK's limit for one metric, and the series for all that exceeds it (metrics SDK, "Cardinality limits"). */
const MAX_SERIES = 2000;
const OVERFLOW: Attributes = { 'otel.metric.overflow': true };

/** Adds up the recorded values of one series. */
interface Aggregation<Value> {
  /** Adds a finite value, not negative, in the metric's unit. `trace`: of the request, an exemplar. */
  record(value: number, trace?: RequestTrace): void;
  /** The value now. It is a copy, so that a slow exporter sends consistent data. */
  toValue(): Value;
}

/** The sum of the values. */
class SumAggregation implements Aggregation<number> {
  #sum = 0;

  record(value: number): void {
    this.#sum += value;
  }

  toValue(): number {
    return this.#sum;
  }
}

/** The values counted in buckets, with their sum, and the last value of each bucket that has a trace. */
class HistogramAggregation implements Aggregation<Distribution> {
  readonly #boundaries: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;
  /** Null until a value has a trace. */
  #exemplars: BucketExemplars | null = null;

  /** `boundaries`: the inclusive upper bounds of all buckets except the last, ascending. */
  constructor(boundaries: readonly number[]) {
    this.#boundaries = boundaries;
    this.#counts = new Array<number>(boundaries.length + 1).fill(0);
  }

  record(value: number, trace?: RequestTrace): void {
    const found = this.#boundaries.findIndex((boundary) => value <= boundary);
    const bucket = found === -1 ? this.#boundaries.length : found;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#count += 1;
    this.#sum += value;
    if (trace === undefined) return;
    this.#exemplars ??= new BucketExemplars(this.#counts.length);
    this.#exemplars.set(bucket, trace, value);
  }

  toValue(): Distribution {
    const buckets = { boundaries: [...this.#boundaries], counts: [...this.#counts] };
    const value = { buckets, sum: this.#sum, count: this.#count };
    return this.#exemplars === null ? value : { ...value, exemplars: this.#exemplars.toList() };
  }
}

/** The last value of each bucket. It is written for every request, so it allocates nothing then. */
class BucketExemplars {
  readonly #traces: (RequestTrace | undefined)[];
  readonly #values: Float64Array;

  constructor(bucketCount: number) {
    this.#traces = new Array<RequestTrace | undefined>(bucketCount).fill(undefined);
    this.#values = new Float64Array(bucketCount);
  }

  set(bucket: number, trace: RequestTrace, value: number): void {
    this.#traces[bucket] = trace;
    this.#values[bucket] = value;
  }

  toList(): readonly (Exemplar | undefined)[] {
    return this.#traces.map((trace, bucket) =>
      trace === undefined ? undefined : { trace, value: this.#values[bucket] ?? 0 },
    );
  }
}

/** A metric that only grows. `maxSeries`: another limit, where something else than clients bounds the series. */
export function createCounter(
  definition: MetricDefinition<'counter'>,
  maxSeries: number = MAX_SERIES,
): Metric<number> {
  return new Metric(
    () => new SumAggregation(),
    (series, interval) => toSumData(definition, series, interval),
    maxSeries,
  );
}

/** A metric that counts its values in buckets. */
export function createHistogram(
  definition: MetricDefinition<'histogram'> & { readonly buckets: readonly number[] },
) {
  return new Metric(
    () => new HistogramAggregation(definition.buckets),
    (series, interval) => toHistogramData(definition, series, interval),
    MAX_SERIES,
  );
}

/** The series of one metric by their attributes. Beyond its limit, new ones share one. */
export class Metric<Value> {
  readonly #createAggregation: () => Aggregation<Value>;
  readonly #toData: (series: readonly Series<Value>[], interval: Interval) => MetricData;
  readonly #maxSeries: number;
  readonly #rows = new Map<
    string,
    { readonly attributes: Attributes; readonly aggregation: Aggregation<Value> }
  >();

  constructor(
    createAggregation: () => Aggregation<Value>,
    toData: (series: readonly Series<Value>[], interval: Interval) => MetricData,
    maxSeries: number,
  ) {
    this.#createAggregation = createAggregation;
    this.#toData = toData;
    this.#maxSeries = maxSeries;
  }

  /**
   * The series of these attributes, which must always have the same order. Keep the result: its first value hashes the
   * attributes.
   */
  bind(attributes: Attributes): BoundMetric {
    return new BoundMetric(() => this.#aggregationOf(attributes));
  }

  /**
   * Every series that has a value, in pieces. Each piece is made when the caller asks for it: thousands of series at
   * once would block the event loop.
   */
  *collect(interval: Interval, seriesPerPiece: number): Generator<MetricData> {
    let series: Series<Value>[] = [];
    for (const { attributes, aggregation } of this.#rows.values()) {
      series.push({ attributes, value: aggregation.toValue() });
      if (series.length < seriesPerPiece) continue;
      yield this.#toData(series, interval);
      series = [];
    }
    if (series.length > 0) yield this.#toData(series, interval);
  }

  #aggregationOf(attributes: Attributes): Aggregation<Value> {
    const key = JSON.stringify(attributes);
    const row = this.#rows.get(key);
    if (row !== undefined) return row.aggregation;
    if (attributes !== OVERFLOW && this.#rows.size >= this.#maxSeries - 1)
      return this.#aggregationOf(OVERFLOW);
    const aggregation = this.#createAggregation();
    this.#rows.set(key, { attributes, aggregation });
    return aggregation;
  }
}

/** One series of a metric. It exists from its first value on. */
export class BoundMetric {
  readonly #findAggregation: () => Pick<Aggregation<unknown>, 'record'>;
  #aggregation: Pick<Aggregation<unknown>, 'record'> | undefined;

  constructor(findAggregation: () => Pick<Aggregation<unknown>, 'record'>) {
    this.#findAggregation = findAggregation;
  }

  /**
   * Adds a value. Ignores an unknown or impossible one, for example a negative token count of an engine. `trace`:
   * of the request, which a histogram keeps as an exemplar.
   */
  record(value: number | undefined, trace?: RequestTrace): void {
    if (value === undefined || !(value >= 0 && Number.isFinite(value))) return;
    this.#aggregation ??= this.#findAggregation();
    this.#aggregation.record(value, trace);
  }
}
