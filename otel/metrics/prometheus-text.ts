import { setImmediate } from 'node:timers/promises';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { DataPointType, type MetricData, type ResourceMetrics } from '@opentelemetry/sdk-metrics';

/** What Prometheus calls the units of our metrics; those in braces have no name there. */
const UNIT_NAMES: ReadonlyMap<string, string> = new Map([['s', 'seconds']]);

/** Series a piece, so that writing it takes 2 ms or so: a histogram is a line a bucket. */
const SERIES_A_PIECE = { histogram: 16, sum: 256 };

/**
 * Metrics as Prometheus reads them, in pieces, with turns of the event loop between them: the serializer writes 30 MB
 * a second, and a large fleet has some. The one scope is no label: it would be the same on every line.
 */
export async function* toPrometheusText(all: ResourceMetrics): AsyncGenerator<string> {
  const { resource, scopeMetrics } = all;
  yield dropRemark(createSerializer({ withTarget: true }).serialize({ resource, scopeMetrics: [] }));
  const serializer = createSerializer({ withTarget: false });
  for (const { scope, metrics } of scopeMetrics) {
    for (const metric of metrics.map(toPrometheusNames)) {
      let isFirst = true;
      for (const piece of toPieces(metric)) {
        const text = serializer.serialize({ resource, scopeMetrics: [{ scope, metrics: [piece] }] });
        yield isFirst ? text : text.replace(/^(?:#.*\n)+/, '');
        isFirst = false;
        await setImmediate();
      }
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
