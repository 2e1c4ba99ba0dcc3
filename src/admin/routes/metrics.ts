import { bytes, defineRoute } from '../route.ts';

/** Prometheus, "Exposition formats": version 3 refuses a scrape without it. */
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** GET /metrics. */
export const showMetrics = defineRoute({
  method: 'GET',
  path: '/metrics',
  operationId: 'showMetrics',
  summary: 'The metrics in the Prometheus format',
  description: 'docs/metrics.md explains each metric.',
  response: { description: 'The Prometheus text format.', content: bytes(PROMETHEUS_TEXT) },
  async handle(_call, { settleRecords, metricsText }) {
    await settleRecords();
    return { body: metricsText() };
  },
});
