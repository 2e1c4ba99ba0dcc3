/*
 * Metrics from the same facts: sums and histograms of records, replicas, process and event loops, for
 * Prometheus and over OTLP.
 *
 * It never knows a span.
 * Begin with start-metrics.ts and record-series.ts; metric.ts bounds how many series each metric has, bounded-names.ts which names.
 */

export {
  allocateEventLoopDelays,
  clearEventLoopDelay,
  type EventLoopDelayMemory,
  publishEventLoopDelay,
} from './event-loop-delay.ts';
export type { ExportState } from './export-metrics.ts';
export type { ModelState, ReplicaState } from './replica-metrics.ts';
export { type Metrics, type MetricsSettings, startMetrics } from './start-metrics.ts';
