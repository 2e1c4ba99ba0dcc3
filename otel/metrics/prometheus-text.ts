import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import type { MetricData, ResourceMetrics } from '@opentelemetry/sdk-metrics';

/** What Prometheus calls the units of our metrics; those in braces have no name there. */
const UNIT_NAMES: ReadonlyMap<string, string> = new Map([['s', 'seconds']]);

/** Metrics as Prometheus reads them. The one scope is no label: it would be the same on every line. */
export function toPrometheusText({ resource, scopeMetrics }: ResourceMetrics): string {
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  return serializer.serialize({
    resource,
    scopeMetrics: scopeMetrics.map(({ scope, metrics }) => ({
      scope,
      metrics: metrics.map(toPrometheusNames),
    })),
  });
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
