import { setImmediate } from 'node:timers/promises';
import type { InstrumentationScope } from '@opentelemetry/core';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import type { Resource } from '@opentelemetry/resources';
import { DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';

/** What Prometheus calls the units of our metrics; those in braces have no name there. */
const UNIT_NAMES: ReadonlyMap<string, string> = new Map([['s', 'seconds']]);

/** Series that are written at a time, which takes 2 ms or so: a histogram is a line a bucket. */
const SERIES_A_PIECE = { histogram: 16, sum: 256 };

/** Metrics that are made while they are read. Pieces of one metric follow each other. */
export interface MetricPieces {
  readonly resource: Resource;
  readonly scope: InstrumentationScope;
  readonly pieces: Iterable<MetricData>;
}

/**
 * Metrics as Prometheus reads them, in pieces, with turns of the event loop between them: the serializer writes 30 MB
 * per second, and a large fleet has some. The one scope is no label: it would be the same on every line.
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

/** What the serializer says where there are no metrics. */
function dropRemark(text: string): string {
  return text.replace(/^# no registered metrics$/m, '');
}

function toPieces(metric: MetricData): readonly MetricData[] {
  const isHistogram = metric.dataPointType === DataPointType.HISTOGRAM;
  const size = isHistogram ? SERIES_A_PIECE.histogram : SERIES_A_PIECE.sum;
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
 * The unit belongs into the name (OpenTelemetry, "Prometheus and OpenMetrics Compatibility", Metric Metadata). The
 * serializer does not put it there; the Collector does, and both ways must give the same names.
 */
function toPrometheusNames(metric: MetricData): MetricData {
  const { descriptor } = metric;
  const unit = UNIT_NAMES.get(descriptor.unit);
  const name = unit === undefined ? descriptor.name : `${descriptor.name}.${unit}`;
  return { ...metric, descriptor: { ...descriptor, name, unit: unit ?? '' } };
}
