import type { Attributes, AttributeValue } from '@opentelemetry/api';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { toServerAddress } from '#otel/base';
import type { GenAiNames } from '#otel/record';
import { OPERATIONS, providerOf, type RequestRecord, SEMCONV } from '#otel/record/registry';
import type { ClientMetricRow, ClientValue, Operations } from './client-metric-row.ts';
import { CLIENT_METRIC_ROWS } from './client-metric-rows.ts';
import { type BoundMetric, createCounter, createHistogram, type Metric } from './metric.ts';
import { type Interval, type RequestTrace, SERIES_PER_PIECE } from './metric-data.ts';

/** The source of the attributes of an operation's series. */
export interface ClientLabels {
  readonly endpoint: string;
  readonly model: string | undefined;
  readonly responseModel: string | undefined;
  /** The `url` of the replica; undefined if none was tried. */
  readonly replicaUrl: string | undefined;
  /** `error.type` as on the span of the operation. */
  readonly errorType: string | undefined;
}

/** The series of operations with the same labels: each takes its value from a record. */
type ClientSeries = readonly { readonly read: ReadValue; readonly bound: BoundMetric }[];

type ReadValue = (record: Readonly<RequestRecord>) => number | undefined;

interface ClientMetric {
  readonly metric: Metric<number> | ReturnType<typeof createHistogram>;
  readonly operations: Operations;
  readonly row: ClientMetricRow;
  readonly values: readonly { readonly read: ReadValue; readonly attributes: Attributes }[];
}

/** How many combinations of labels are cached with their series. */
const MAX_CACHED_SERIES = 4096;

/** The codes with which a request ends that no replica could take: an operation that failed without an attempt. */
const WITHOUT_REPLICA: ReadonlySet<string | undefined> = new Set([
  'all_replicas_drained',
  'no_replica_reachable',
  'overloaded',
]);

/** Whether the gateway looked for a replica. Requests that it refused before that are no operations. */
export function isOperation({ attempts, queue_ms, error_type }: Readonly<RequestRecord>): boolean {
  return attempts !== undefined || queue_ms !== undefined || WITHOUT_REPLICA.has(error_type);
}

/** Metrics of the client's side of operations, `gen_ai.client.*`: those that exist with these names of the conventions. */
export class ClientMetrics {
  readonly #metrics: readonly ClientMetric[];
  readonly #seriesByLabels = new Map<string, ClientSeries>();

  constructor(names: GenAiNames) {
    const rows: readonly ClientMetricRow[] = CLIENT_METRIC_ROWS;
    this.#metrics = rows.flatMap((row) => {
      const operations = row[names];
      return operations === null ? [] : [toClientMetric(row, operations)];
    });
  }

  /** Counts the record of an operation. Called for every request. */
  record(labels: ClientLabels, record: Readonly<RequestRecord>, trace: RequestTrace): void {
    for (const { read, bound } of this.#seriesOf(labels)) bound.record(read(record), trace);
  }

  /** Every metric that has a value, in pieces. */
  *collect(interval: Interval): Generator<MetricData> {
    for (const { metric } of this.#metrics) yield* metric.collect(interval, SERIES_PER_PIECE);
  }

  #seriesOf(labels: ClientLabels): ClientSeries {
    const { endpoint, model, responseModel, replicaUrl, errorType } = labels;
    const answered =
      responseModel === model || responseModel === undefined ? '' : JSON.stringify(responseModel);
    // The model comes last: only a model can contain the separator.
    const key = `${endpoint}\n${errorType}\n${replicaUrl}\n${responseModel === undefined}\n${answered}\n${model}`;
    const known = this.#seriesByLabels.get(key);
    if (known !== undefined) return known;
    // This empties only the cache. The series stay.
    if (this.#seriesByLabels.size >= MAX_CACHED_SERIES) this.#seriesByLabels.clear();
    const series = this.#bind(labels);
    this.#seriesByLabels.set(key, series);
    return series;
  }

  #bind(labels: ClientLabels): ClientSeries {
    const shared = toSharedAttributes(labels);
    return this.#metrics.flatMap(({ metric, operations, row, values }) =>
      isAmong(operations, labels.endpoint)
        ? values.map(({ read, attributes }) => ({
            read,
            bound: metric.bind({ ...pick(shared, row.attributes), ...attributes }),
          }))
        : [],
    );
  }
}

function toClientMetric(row: ClientMetricRow, operations: Operations): ClientMetric {
  const values = row.values.map((value) => ({
    read: toReader(value, row.metric.unit),
    attributes: value.attributes,
  }));
  return {
    metric: 'buckets' in row.metric ? createHistogram(row.metric) : createCounter(row.metric),
    operations,
    row,
    values,
  };
}

/** Decided once, so that nothing is looked up for each record. */
function toReader({ field, isZeroIfUnknown, without }: ClientValue, unit: string): ReadValue {
  if (unit === 's') return (record) => toSeconds(record[field]);
  if (!isZeroIfUnknown) return (record) => record[field];
  if (without.length === 0) return (record) => record[field] ?? 0;
  return (record) => {
    let rest = record[field] ?? 0;
    for (const part of without) rest -= record[part] ?? 0;
    return Math.max(0, rest);
  };
}

const toSeconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);

function isAmong(operations: Operations, endpoint: string): boolean {
  if (operations === 'all') return true;
  const operation = OPERATIONS.get(endpoint);
  return (operation === 'chat' || operation === 'text_completion') === (operations === 'inference');
}

function toSharedAttributes(labels: ClientLabels): Readonly<Record<string, AttributeValue | undefined>> {
  const { endpoint, model, responseModel, replicaUrl, errorType } = labels;
  const { address, port } = replicaUrl === undefined ? {} : toServerAddress(replicaUrl);
  return {
    [SEMCONV.genAiOperationName]: OPERATIONS.get(endpoint),
    [SEMCONV.genAiProviderName]: providerOf(endpoint),
    [SEMCONV.genAiRequestModel]: model,
    [SEMCONV.genAiResponseModel]: responseModel,
    [SEMCONV.serverAddress]: address,
    [SEMCONV.serverPort]: port,
    [SEMCONV.errorType]: errorType,
  };
}

function pick(
  from: Readonly<Record<string, AttributeValue | undefined>>,
  names: readonly string[],
): Attributes {
  const picked: Attributes = {};
  for (const name of names) if (from[name] !== undefined) picked[name] = from[name];
  return picked;
}
