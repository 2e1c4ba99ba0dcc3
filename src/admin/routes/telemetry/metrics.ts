import { bytes, defineRoute } from '../../route.ts';

/** Prometheus, "Exposition formats": version 3 refuses a scrape without it. */
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** OpenMetrics 1.0, "Content type". */
const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** GET /metrics. */
export const showMetrics = defineRoute({
  method: 'GET',
  path: '/metrics',
  operationId: 'showMetrics',
  summary: 'The metrics in a format of Prometheus',
  description:
    'docs/metrics.md explains each metric. A client that accepts `application/openmetrics-text` of version 1.0.0, as Prometheus does, gets OpenMetrics, which has exemplars.',
  response: { description: 'The Prometheus text format.', content: bytes(PROMETHEUS_TEXT) },
  async handle({ accept }, { settleRecords, metricsText }) {
    await settleRecords();
    if (!prefersOpenMetrics(accept)) return { body: metricsText('text'), headers: { Vary: 'Accept' } };
    return { body: metricsText('openmetrics'), headers: { 'Content-Type': OPENMETRICS, Vary: 'Accept' } };
  },
});

/** Whether an `Accept` header (RFC 9110 12.5.1) names OpenMetrics 1.0.0, and no text format with a greater weight. */
function prefersOpenMetrics(accept: string): boolean {
  const ranges = accept.split(',').map(toRange);
  const weigh = (isMeant: (range: MediaRange) => boolean) =>
    Math.max(0, ...ranges.filter(isMeant).map(({ weight }) => weight));
  const openMetrics = weigh(
    ({ type, version }) => type === 'application/openmetrics-text' && (version ?? '1.0.0') === '1.0.0',
  );
  return openMetrics > 0 && openMetrics >= weigh(({ type }) => type === 'text/plain');
}

/** One entry of an `Accept` header; an impossible weight is 0. */
interface MediaRange {
  readonly type: string;
  readonly version: string | undefined;
  readonly weight: number;
}

function toRange(text: string): MediaRange {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim().toLowerCase());
  const parameters = new Map(rest.map((part) => part.split(/ *= */, 2) as [string, string]));
  const weight = Number(parameters.get('q') ?? 1);
  const version = parameters.get('version')?.replaceAll('"', '');
  return { type, version, weight: weight >= 0 && weight <= 1 ? weight : 0 };
}
