import type { Attributes } from '@opentelemetry/api';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { type Cell, HistogramCell, SumCell } from './cells.ts';
import {
  type Interval,
  type MetricDefinition,
  type Series,
  toHistogramData,
  toSumData,
} from './metric-data.ts';

/** The SDK's own limit of one metric, and the series of what is beyond it (metrics SDK, "Cardinality limits"). */
const MAX_SERIES = 2000;
const OVERFLOW: Attributes = { 'otel.metric.overflow': true };

/** A metric that only grows. */
export function createCounter(definition: MetricDefinition<'counter'>): Metric<number> {
  return new Metric(
    () => new SumCell(),
    (series, interval) => toSumData(definition, series, interval),
  );
}

/** A metric whose values are counted by size. */
export function createHistogram(
  definition: MetricDefinition<'histogram'> & { readonly buckets: readonly number[] },
) {
  return new Metric(
    () => new HistogramCell(definition.buckets),
    (series, interval) => toHistogramData(definition, series, interval),
  );
}

/** The series of one metric by their attributes; beyond 2,000 of them the newcomers share one. */
export class Metric<Value> {
  readonly #createCell: () => Cell<Value>;
  readonly #toData: (series: readonly Series<Value>[], interval: Interval) => MetricData;
  readonly #rows = new Map<string, { readonly attributes: Attributes; readonly cell: Cell<Value> }>();

  constructor(
    createCell: () => Cell<Value>,
    toData: (series: readonly Series<Value>[], interval: Interval) => MetricData,
  ) {
    this.#createCell = createCell;
    this.#toData = toData;
  }

  /**
   * The series of these attributes, which must always come in the same order. Its first value hashes them: keep
   * what is bound.
   */
  bind(attributes: Attributes): BoundMetric {
    return new BoundMetric(() => this.#cellOf(attributes));
  }

  /**
   * Every series that has a value, in pieces of so many. Each is made when it is asked for: thousands of them at once
   * would hold up everything else.
   */
  *collect(interval: Interval, seriesAPiece: number): Generator<MetricData> {
    let series: Series<Value>[] = [];
    for (const { attributes, cell } of this.#rows.values()) {
      series.push({ attributes, value: cell.toValue() });
      if (series.length < seriesAPiece) continue;
      yield this.#toData(series, interval);
      series = [];
    }
    if (series.length > 0) yield this.#toData(series, interval);
  }

  #cellOf(attributes: Attributes): Cell<Value> {
    const key = JSON.stringify(attributes);
    const row = this.#rows.get(key);
    if (row !== undefined) return row.cell;
    if (attributes !== OVERFLOW && this.#rows.size >= MAX_SERIES - 1) return this.#cellOf(OVERFLOW);
    const cell = this.#createCell();
    this.#rows.set(key, { attributes, cell });
    return cell;
  }
}

/** One series of a metric. It begins with its first value. */
export class BoundMetric {
  readonly #findCell: () => Pick<Cell<unknown>, 'record'>;
  #cell: Pick<Cell<unknown>, 'record'> | undefined;

  constructor(findCell: () => Pick<Cell<unknown>, 'record'>) {
    this.#findCell = findCell;
  }

  /** Takes a value. One that is unknown, or that cannot be (an engine's negative token count), is left out. */
  record(value: number | undefined): void {
    if (value === undefined || !(value >= 0 && Number.isFinite(value))) return;
    this.#cell ??= this.#findCell();
    this.#cell.record(value);
  }
}
