import { setImmediate } from 'node:timers/promises';
import type { InstrumentationScope } from '@opentelemetry/core';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import type { Resource } from '@opentelemetry/resources';
import { DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';

/** Prometheus' names for the units of our metrics. Units in braces have none. */
const UNIT_NAMES: ReadonlyMap<string, string> = new Map([['s', 'seconds']]);

/** How many series are written at a time, which takes about 2 ms. A histogram has one line per bucket. */
const SERIES_PER_PIECE = { histogram: 16, sum: 256 };

/** Metrics that are collected while they are iterated. Pieces of one metric follow each other. */
export interface MetricPieces {
  readonly resource: Resource;
  readonly scope: InstrumentationScope;
  readonly pieces: Iterable<MetricData>;
}

/**
 * Metrics in Prometheus' text format, in pieces, with a turn of the event loop after each: the serializer writes 30 MB
 * per second, and the metrics of a large fleet are several MB. There is one scope, so it is not a label.
 */
export async function* toPrometheusText({ resource, scope, pieces }: MetricPieces): AsyncGenerator<string> {
  yield dropRemark(createSerializer({ withTarget: true }).serialize({ resource, scopeMetrics: [] }));
  const serializer = createSerializer({ withTarget: false });
  let lastName = '';
  for (const collected of pieces) {
    const metric = toPrometheusNames(collected);
    for (const piece of toPieces(metric)) {
      const text = serializer.serialize({ resource, scopeMetrics: [{ scope, metrics: [piece] }] });
      const { name } = piece.descriptor;
      yield name === lastName ? text.replace(/^(?:#.*\n)+/, '') : text;
      lastName = name;
      await setImmediate();
    }
  }
}

function createSerializer({ withTarget }: { readonly withTarget: boolean }): PrometheusSerializer {
  return new PrometheusSerializer(undefined, false, undefined, !withTarget, true);
}

/** Removes the comment that the serializer writes when there are no metrics. */
function dropRemark(text: string): string {
  return text.replace(/^# no registered metrics$/m, '');
}

function toPieces(metric: MetricData): readonly MetricData[] {
  const isHistogram = metric.dataPointType === DataPointType.HISTOGRAM;
  const size = isHistogram ? SERIES_PER_PIECE.histogram : SERIES_PER_PIECE.sum;
  const starts = Array.from(
    { length: Math.ceil(metric.dataPoints.length / size) },
    (_, piece) => piece * size,
  );
  return starts.map((start) => takePoints(metric, start, start + size));
}

function takePoints(metric: MetricData, start: number, end: number): MetricData {
  return { ...metric, dataPoints: metric.dataPoints.slice(start, end) } as MetricData;
}

/**
 * The unit is part of the name (OpenTelemetry, "Prometheus and OpenMetrics Compatibility", Metric Metadata). The
 * Collector appends it and the serializer does not, but both must give the same names.
 */
function toPrometheusNames(metric: MetricData): MetricData {
  const { descriptor } = metric;
  const unit = UNIT_NAMES.get(descriptor.unit);
  const name = unit === undefined ? descriptor.name : `${descriptor.name}.${unit}`;
  return { ...metric, descriptor: { ...descriptor, name, unit: unit ?? '' } };
}
