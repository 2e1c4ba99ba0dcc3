import type { Config } from '#config';
import { openExporter } from '#otel';
import { adviseOnCollector, CollectorHeaders, type HeaderTexts, toShownAddress } from '#otel/collector';
import type { ExportOutcome } from '#otel/export';
import { encodeResourceSpans } from '#otel/otlp';
import { createResource } from '#otel/resource';
import { toTelemetrySettings } from '../serving/settings.ts';
import { type ConnectionCheck, runCheck } from './connection-check.ts';

const EXPORT_TIMEOUT_MS = 5_000;

/** Warnings about variables were given by `checkSettings`. */
const SILENT = { info() {}, warn() {}, error() {} };

/**
 * Sends the collector an export without records, with these headers beside those of the variables. Null if records go
 * to files.
 */
export async function checkCollector(
  config: Omit<Config, 'replicas'>,
  headers: HeaderTexts,
): Promise<ConnectionCheck | null> {
  const { exporter: settings } = toTelemetrySettings(config);
  if (settings.to === 'file') return null;
  const exporter = await openExporter(settings, encodeResourceSpans(createResource({})), {
    log: SILENT,
    collectorHeaders: new CollectorHeaders(headers),
  });
  const url = exporter.collector?.url ?? new URL('http://localhost');
  const name = config.export.endpoint === null ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : 'export.endpoint';
  return await runCheck('collector', name, async () => {
    try {
      const reason = toReason(await exporter.exportBatch([], AbortSignal.timeout(EXPORT_TIMEOUT_MS)));
      const target = toShownAddress(url);
      if (reason === null) return { target, isOk: true, result: 'ok', advice: null };
      const advice = adviseOnCollector(reason, url) ?? null;
      return { target, isOk: false, result: reason.replace(/^http_/, 'status '), advice };
    } finally {
      exporter.close();
    }
  });
}

/** Null if the collector took it. */
function toReason(outcome: ExportOutcome): string | null {
  switch (outcome.kind) {
    case 'taken':
      return null;
    case 'answered':
      return `http_${outcome.status}`;
    case 'oversized':
      return 'an answer that is too large';
    case 'unanswered':
      return outcome.code === 'aborted' || outcome.code === 'timeout' ? 'no answer in time' : outcome.code;
  }
}
