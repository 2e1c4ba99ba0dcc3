import { isRemote, requireJwks } from '#access/jwt';
import type { Config } from '#config';
import { openExporter } from '#otel';
import type { Log } from '#otel/base';
import { CollectorHeaders, type HeaderTexts } from '#otel/collector';
import { encodeResourceSpans } from '#otel/otlp';
import { createResource } from '#otel/resource';
import { loadStatementKey } from '#statement';
import { orTelemetryError } from '../composition/or-telemetry-error.ts';
import { toTelemetrySettings } from '../serving/settings.ts';

/**
 * Reads what a gateway with this configuration would read at its start, without touching `state_dir` or calling a server:
 * a file of keys of tokens, the key of statements, and the variables, headers and certificates of the export. Rejects with an
 * UnusableSettingError for what cannot be used. `log` gets warnings about OTEL_* variables.
 */
export async function checkSettings(
  { jwt, statementKey, ...config }: Omit<Config, 'replicas'>,
  headers: HeaderTexts,
  log: Log,
): Promise<void> {
  if (jwt !== null && !isRemote(jwt.jwks)) await requireJwks(jwt.jwks);
  if (statementKey !== null) await loadStatementKey(statementKey, `statement_key: ${statementKey}`);
  await orTelemetryError('telemetry', async () => {
    const collectorHeaders = new CollectorHeaders(headers);
    const { exporter: settings } = toTelemetrySettings({ ...config, jwt, statementKey });
    if (settings.to === 'file') return;
    const resource = encodeResourceSpans(createResource({}));
    (await openExporter(settings, resource, { log, collectorHeaders })).close();
  });
}
