import process from 'node:process';
import { getBooleanFromEnv, getStringFromEnv } from '@opentelemetry/core';
import { type Log, TelemetrySettingError } from '#otel/base';

const CONFIG_FILES = ['OTEL_CONFIG_FILE', 'OTEL_EXPERIMENTAL_CONFIG_FILE'];

/**
 * Refuses to start with a file of OpenTelemetry's declarative configuration. To ignore it would send records somewhere else
 * than it says.
 *
 * @throws {TelemetrySettingError} if the variable is set
 */
export function refuseConfigFile(): void {
  const variable = CONFIG_FILES.find((name) => getStringFromEnv(name) !== undefined);
  if (variable === undefined) return;
  throw new TelemetrySettingError(
    `${variable} is set, but the gateway does not read OpenTelemetry's declarative configuration: unset it, and use ` +
      'the configuration of the gateway and the OTEL_EXPORTER_OTLP_* variables',
  );
}

/** A variable of OpenTelemetry's specification that has no effect here. */
interface Ineffective {
  readonly names: RegExp;
  /** What holds instead. */
  readonly instead: string;
  /** Values that ask for what the gateway does anyway. */
  readonly fits?: RegExp;
}

/** OpenTelemetry specification 1.60, "Environment Variable Specification". docs/configuration.md has all of them. */
const INEFFECTIVE: readonly Ineffective[] = [
  {
    names: /^OTEL_TRACES_SAMPLER(?:_ARG)?$/,
    instead: 'every request leaves a record: sample in the collector',
    fits: /^always_on$/,
  },
  {
    names: /^OTEL_TRACES_EXPORTER$/,
    instead: 'export.to of the configuration decides where records go',
    fits: /^otlp$/,
  },
  {
    names: /^OTEL_METRICS_EXPORTER$/,
    instead: 'metrics are pushed over OTLP and read by Prometheus at GET /metrics',
    fits: /^(?:otlp|none)$/,
  },
  { names: /^OTEL_LOGS_EXPORTER$/, instead: 'the log goes to standard output', fits: /^(?:none|console)$/ },
  {
    names: /^OTEL_PROPAGATORS$/,
    instead: 'the gateway speaks W3C Trace Context (trace.incoming), and passes no baggage',
    fits: /^tracecontext(?: *, *baggage)?$/,
  },
  { names: /^OTEL_LOG_LEVEL$/, instead: 'log.level of the configuration is the level of the log' },
  { names: /^OTEL_BSP_/, instead: 'export of the configuration has the settings of the queue' },
  { names: /^OTEL_BLRP_|^OTEL_LOGRECORD_|^OTEL_EXPORTER_OTLP_LOGS_/, instead: 'the gateway exports no logs' },
  {
    names: /^OTEL_(?:SPAN_|EVENT_|LINK_)?ATTRIBUTE_|^OTEL_SPAN_(?:EVENT|LINK)_COUNT_LIMIT$/,
    instead: 'records have limits of their own, and are not cut',
  },
  {
    names: /^OTEL_EXPORTER_OTLP_(?:TRACES_|METRICS_)?INSECURE$/,
    instead: 'it is for gRPC: the scheme of the URL decides',
  },
  { names: /^OTEL_EXPORTER_(?:ZIPKIN|JAEGER)_/, instead: 'records go to an OTLP collector' },
  { names: /^OTEL_EXPORTER_PROMETHEUS_/, instead: 'gateway.admin_listen has GET /metrics' },
  {
    names: /^OTEL_METRICS_EXEMPLAR_FILTER$/,
    instead: 'every histogram of latency has exemplars, and every request is sampled',
    fits: /^(?:trace_based|always_on)$/,
  },
  { names: /^OTEL_METRIC_EXPORT_TIMEOUT$/, instead: 'OTEL_EXPORTER_OTLP_METRICS_TIMEOUT limits a call' },
  {
    names: /^OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION$/,
    instead: 'histograms have the buckets of the conventions',
    fits: /^explicit_bucket_histogram$/,
  },
  { names: /^OTEL_ENTITIES$/, instead: 'OTEL_RESOURCE_ATTRIBUTES describes the resource' },
];

/** Logs one warning for each variable that is set and has no effect, and what OTEL_SDK_DISABLED turns off. */
export function warnOfVariables(log: Log): void {
  if (getBooleanFromEnv('OTEL_SDK_DISABLED')) {
    log.warn(
      { variable: 'OTEL_SDK_DISABLED' },
      'OTEL_SDK_DISABLED turns off the push of metrics and the spans of admin actions. Records are exported all the same',
    );
  }
  for (const variable of Object.keys(process.env).toSorted()) {
    const found = variable.startsWith('OTEL_')
      ? INEFFECTIVE.find(({ names }) => names.test(variable))
      : undefined;
    const value = found === undefined ? undefined : getStringFromEnv(variable)?.trim();
    if (found === undefined || value === undefined || found.fits?.test(value) === true) continue;
    log.warn({ variable, instead: found.instead }, 'this variable has no effect on the gateway');
  }
}
