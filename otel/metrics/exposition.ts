import { setImmediate } from 'node:timers/promises';
import type { Attributes } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { type DataPoint, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import type { Distribution, Exemplar } from './metric-data.ts';

/**
 * The formats that Prometheus reads. `openmetrics` (OpenMetrics 1.0) has exemplars and units; `text` (Prometheus' text
 * format 0.0.4) has neither.
 */
export type ExpositionFormat = 'text' | 'openmetrics';

/** The names of units at the end of a metric's name. Units in braces have none. */
const UNIT_NAMES: ReadonlyMap<string, string> = new Map([
  ['s', 'seconds'],
  ['By', 'bytes'],
]);

/** How many series are written at a time, which takes about 1 ms. A histogram has one line per bucket. */
const SERIES_PER_PIECE = { histogram: 16, other: 256 };

/** Metrics that are collected while they are iterated. Pieces of one metric follow each other. */
export interface MetricPieces {
  readonly resource: Resource;
  readonly pieces: Iterable<MetricData>;
}

/**
 * Metrics in a format of Prometheus, in pieces, with a turn of the event loop after each: the metrics of a large fleet
 * are several MB. The names are those of OpenTelemetry's "Prometheus and OpenMetrics Compatibility", so they are the
 * Collector's, too. There is one scope, so it is not a label. Start times (`_created`) are left out: Prometheus would
 * store each as a series of its own.
 */
export async function* toExposition(
  { resource, pieces }: MetricPieces,
  format: ExpositionFormat,
): AsyncGenerator<string> {
  yield toTargetInfo(resource, format);
  let lastName = '';
  for (const metric of pieces) {
    const { name } = metric.descriptor;
    let head = name === lastName ? '' : toHead(metric, format);
    lastName = name;
    for (const samples of toParts(metric, format)) {
      yield head + samples;
      head = '';
      await setImmediate();
    }
  }
  if (format === 'openmetrics') yield '# EOF\n';
}

/** The resource. OpenMetrics has a type for it. */
function toTargetInfo({ attributes }: Resource, format: ExpositionFormat): string {
  const [family, type] = format === 'openmetrics' ? ['target', 'info'] : ['target_info', 'gauge'];
  const labels = `{${toLabels(attributes)}}`;
  return `# HELP ${family} Target metadata\n# TYPE ${family} ${type}\ntarget_info${labels} 1\n`;
}

/** The lines before the samples. In OpenMetrics the family of a counter has no `_total`, its samples have. */
function toHead(metric: MetricData, format: ExpositionFormat): string {
  const isOpen = format === 'openmetrics';
  const type = toType(metric);
  const name = toFamilyName(metric) + (isOpen ? '' : toSuffix(metric));
  const help = escapeAll(metric.descriptor.description, isOpen ? OPENMETRICS_HELP : TEXT_HELP);
  const unit = UNIT_NAMES.get(metric.descriptor.unit);
  const unitLine = isOpen && unit !== undefined ? `# UNIT ${name} ${unit}\n` : '';
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${unitLine}`;
}

/** The unit is part of the name ("Prometheus and OpenMetrics Compatibility", Metric Metadata). */
function toFamilyName({ descriptor }: MetricData): string {
  const unit = UNIT_NAMES.get(descriptor.unit);
  return unit === undefined ? toName(descriptor.name) : `${toName(descriptor.name)}_${unit}`;
}

function toType(metric: MetricData): 'counter' | 'gauge' | 'histogram' {
  if (metric.dataPointType === DataPointType.HISTOGRAM) return 'histogram';
  return metric.dataPointType === DataPointType.SUM && metric.isMonotonic ? 'counter' : 'gauge';
}

const toSuffix = (metric: MetricData): string => (toType(metric) === 'counter' ? '_total' : '');

/** The samples of a metric, a few series at a time. */
function* toParts(metric: MetricData, format: ExpositionFormat): Generator<string> {
  const name = toFamilyName(metric);
  if (metric.dataPointType === DataPointType.HISTOGRAM) {
    // The SDK's type has no exemplars. All histograms come from toHistogramData.
    const series = metric.dataPoints as readonly DataPoint<Distribution>[];
    for (const points of partsOf(series, SERIES_PER_PIECE.histogram)) {
      yield points.map(({ attributes, value }) => toBuckets(name, attributes, value, format)).join('');
    }
  } else if (metric.dataPointType !== DataPointType.EXPONENTIAL_HISTOGRAM) {
    const sample = name + toSuffix(metric);
    for (const points of partsOf(metric.dataPoints, SERIES_PER_PIECE.other)) {
      yield points.map(({ attributes, value }) => `${sample}${toBraces(attributes)} ${value}\n`).join('');
    }
  }
}

function* partsOf<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

/** The cumulative buckets of a series, each with its exemplar, then its sum and count. */
function toBuckets(
  name: string,
  attributes: Attributes,
  { buckets, sum, count, exemplars }: Distribution,
  format: ExpositionFormat,
): string {
  const labels = toLabels(attributes);
  const before = labels === '' ? '' : `${labels},`;
  let cumulative = 0;
  let text = '';
  for (const [bucket, inBucket] of buckets.counts.entries()) {
    cumulative += inBucket;
    const bound = toBound(buckets.boundaries[bucket], format);
    const exemplar = format === 'openmetrics' ? exemplars?.[bucket] : undefined;
    text += `${name}_bucket{${before}le="${bound}"} ${cumulative}${toExemplar(exemplar)}\n`;
  }
  const braces = toBraces(attributes);
  return `${text}${name}_sum${braces} ${sum}\n${name}_count${braces} ${count}\n`;
}

/** OpenMetrics wants `1.0` ("Considerations: Canonical Numbers"); Prometheus' own libraries write `1` as text. */
function toBound(boundary: number | undefined, format: ExpositionFormat): string {
  if (boundary === undefined) return '+Inf';
  return format === 'openmetrics' && Number.isInteger(boundary) ? `${boundary}.0` : String(boundary);
}

function toExemplar(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return '';
  const { trace, value } = exemplar;
  return ` # {trace_id="${trace.traceId}"} ${value} ${(trace.recordedEpochMs / 1000).toFixed(3)}`;
}

function toBraces(attributes: Attributes): string {
  const labels = toLabels(attributes);
  return labels === '' ? '' : `{${labels}}`;
}

function toLabels(attributes: Attributes): string {
  let labels = '';
  for (const [key, value] of Object.entries(attributes)) {
    if (labels !== '') labels += ',';
    labels += `${toName(key)}="${escapeAll(String(value), LABEL_VALUE)}"`;
  }
  return labels;
}

/** Names of OpenTelemetry have letters, digits and dots. */
const toName = (name: string): string => name.replace(/\W/g, '_');

/** The characters with a backslash before them: in label values, and in the help of each format. */
const LABEL_VALUE = /[\\"\n]/g;
const OPENMETRICS_HELP = LABEL_VALUE;
const TEXT_HELP = /[\\\n]/g;

function escapeAll(text: string, special: RegExp): string {
  return text.replace(special, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
