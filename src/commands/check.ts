import { createCertificateReader } from '../certificates/certificate-files.ts';
import type { ConnectionCheck } from '../check-connections/connection-check.ts';
import { readClients } from '../clients/read-clients.ts';
import { type Config, toConfig } from '../config/config.ts';
import { printConfigFile } from '../config/load.ts';
import { type EnvironmentSecrets, readEnvironmentSecrets } from '../config/secrets/environment-secrets.ts';
import { orStartError } from '../start-error.ts';
import { printJson } from './admin/client.ts';
import { type Invocation, UsageError } from './command-line/command.ts';
import { COMMANDS } from './command-line/command-table.ts';
import { loadConfigFile, requireConfigPath } from './command-line/config-file.ts';
import { parseOptions } from './command-line/options.ts';
import { createLogger } from './serve/log/logger.ts';
import { createPaint } from './terminal/paint.ts';
import { toReasonText } from './terminal/replica-cells.ts';
import { type Cell, toTable } from './terminal/table.ts';

/**
 * `gateway check -config FILE`: validates a configuration with the files that it names and the secrets of the environment,
 * and prints it with all defaults, secrets masked. With `--connect`, tries the servers that it names instead, and returns
 * 1 if one cannot be reached.
 */
export async function check({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.check.options);
  if (values.json && !values.connect) throw new UsageError("option '--json' needs '--connect'");
  const path = requireConfigPath(values.config, env);
  const { file, fromFiles } = await loadConfigFile(path, env);
  const config = await withCertificates(toConfig(file));
  await readClients(config);
  const { secrets, warnings } = await readEnvironmentSecrets(env);
  for (const warning of warnings) stderr.write(`gateway: warning: ${warning}\n`);
  if (!values.connect) {
    stdout.write(printConfigFile(file, fromFiles));
    return 0;
  }
  const checks = await connectToAll(config, { secrets, stderr });
  const isOk = checks.every((each) => each.isOk);
  if (values.json) printJson(stdout, { ok: isOk, checks: checks.map(toJson) });
  else {
    const look = { paint: createPaint(stdout, env), rightAligned: ['TIME'] };
    stdout.write(toTable(HEAD, checks.map(toRow), look));
  }
  return isOk ? 0 : 1;
}

/** Reads the certificates, as the gateway does at its start. Rejects with a StartError if it could not use them. */
async function withCertificates(config: Config): Promise<Config> {
  const { replicas, services } = await createCertificateReader()(config);
  return { ...config, replicas, services };
}

async function connectToAll(
  config: Config,
  { secrets, stderr }: Pick<Invocation, 'stderr'> & { readonly secrets: EnvironmentSecrets },
): Promise<readonly ConnectionCheck[]> {
  // What the check of a file alone does not need is not loaded for it.
  const { checkConnections } = await import('../check-connections/check-connections.ts');
  const log = createLogger('warn', stderr);
  return await orStartError('telemetry', checkConnections(config, secrets.collectorHeaders, log));
}

const HEAD = ['NAME', 'TARGET', 'RESULT', 'TIME', 'WHAT TO CHANGE'];

function toRow({
  kind,
  name,
  target,
  isOk,
  result,
  advice,
  durationMs,
  found,
}: ConnectionCheck): readonly Cell[] {
  const models = found === null ? '' : `, ${found.engine}: ${toModelList(found.models)}`;
  const time = `${Math.max(1, Math.round(durationMs))} ms`;
  const shownName = kind === 'replica' ? name : kind;
  const text = `${toReasonText(result) ?? result}${models}`;
  return [shownName, target, { text, style: isOk ? null : 'red' }, time, advice ?? '-'];
}

/** How many models of a replica a row names. */
const MAX_NAMED_MODELS = 3;

function toModelList(models: readonly string[]): string {
  const more = models.length - MAX_NAMED_MODELS;
  const named = models.slice(0, MAX_NAMED_MODELS).join(', ');
  return models.length === 0 ? 'no models' : more > 0 ? `${named} and ${more} more` : named;
}

function toJson({ kind, name, target, isOk, result, advice, durationMs, found }: ConnectionCheck): object {
  return {
    ...{ kind, name, target, ok: isOk, result, advice },
    duration_ms: Math.round(durationMs * 10) / 10,
    ...(found ?? {}),
  };
}
