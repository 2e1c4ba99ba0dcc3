import type { MetricData } from '@opentelemetry/sdk-metrics';
import { ExportCounters } from '#otel/queue';
import { FULL_RECORD } from '#testkit/records/records.ts';
import { ExportMetrics } from '../../../otel/metrics/export-metrics.ts';
import { METRICS } from '../../../otel/metrics/metric-table.ts';
import { toGatewayMetrics, toProcessMetrics } from '../../../otel/metrics/process-metrics.ts';
import { RecordMetrics } from '../../../otel/metrics/record-metrics.ts';
import { toModelMetrics, toReplicaMetrics } from '../../../otel/metrics/replica-metrics.ts';
import { toConditionMetrics, toShadowMetrics, toSourceMetrics } from '../../../otel/metrics/start-metrics.ts';
import { toVerdictMetrics } from '../../../otel/metrics/verdict-metrics.ts';
import { INTERVAL } from './collected.ts';
import { GATEWAY_SOURCES } from './gateway-sources.ts';

/** The names of all metrics on the wire. */
export const METRIC_NAMES: readonly string[] = Object.values(METRICS).map(({ name }) => name);

/** All metrics of a gateway in which everything has happened, after requests of every kind. */
export function collectAllMetrics(): readonly MetricData[] {
  const settings = { maxNames: 1, urlScheme: 'http', isKnownModel: () => true } as const;
  const replicaUrl = (name: string) => `http://${name}:8000`;
  const ofRecords = (['pinned', 'latest'] as const).flatMap((genAi) => {
    const records = new RecordMetrics({ ...settings, replicaUrl, genAi });
    const { error_type: _, truncated: __, ...success } = FULL_RECORD;
    for (const record of [success, { ...FULL_RECORD, status: 502 }]) records.record(record);
    // With the newest names these are of the operations that are no inference.
    records.record({ ...success, endpoint: '/v1/embeddings' });
    return [...records.collect(INTERVAL)];
  });
  const stats = { ...new ExportCounters().values, queued: 0 };
  return [
    ...ofRecords,
    ...toReplicaMetrics(GATEWAY_SOURCES.replicas(), INTERVAL),
    ...toModelMetrics(GATEWAY_SOURCES.models(), INTERVAL),
    ...toSourceMetrics(GATEWAY_SOURCES.sources(), INTERVAL),
    ...toConditionMetrics(GATEWAY_SOURCES.conditions(), INTERVAL),
    ...toShadowMetrics(GATEWAY_SOURCES.shadows(), INTERVAL),
    ...toVerdictMetrics(GATEWAY_SOURCES.comparisons(), INTERVAL),
    ...toGatewayMetrics(GATEWAY_SOURCES.gateway(), INTERVAL),
    ...new ExportMetrics(new URL('http://collector:4318')).collect(
      { stats, queueCapacity: 1, inflight: 0 },
      INTERVAL,
    ),
    ...toProcessMetrics(
      {
        version: '1.2.3',
        workers: GATEWAY_SOURCES.workers(),
        delays: [{ thread: 0, p50Ms: 1, p99Ms: 2, maxMs: 3 }],
      },
      INTERVAL,
    ),
  ];
}
