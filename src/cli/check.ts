import { createCertificateReader, findExpiring } from '#access/certificates';
import { readClients } from '#access/clients';
import { UnusableSettingError } from '#base';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, readConfigFile, requireConfigPath, UsageError } from '#cli/command';
import { type Cell, createPaint, toOneLine, toTable } from '#cli/terminal';
import { type Config, hasHealthChecks, printConfig } from '#config';
import { readEnvironmentSecrets } from '#config/secrets';
import type { ConnectionCheck, SecuredConfig } from '#gateway';
import { printJson } from './print-json.ts';
import { createLogger } from './serve/log/logger.ts';
import { toReasonText } from './tables/replica-cells.ts';

/**
 * `gateway check -config FILE`: validates a configuration with the files that it names and what the environment has for it,
 * and prints that it is valid, and it with all defaults, secrets masked; a notice on standard error says when health checks are
 * off. With `--connect`, tries the servers that it names instead, and returns 1 if one cannot be reached.
 */
export async function check({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.check.options);
  if (values.json && !values.connect) throw new UsageError("option '--json' needs '--connect'");
  const path = requireConfigPath(values.config, env);
  const { config, fromFiles } = await readConfigFile(path, env);
  const secured = await withCertificates(config, stderr);
  await readClients(config);
  const { secrets, warnings } = await readEnvironmentSecrets(env);
  for (const warning of warnings) stderr.write(`gateway: warning: ${warning}\n`);
  const { checkConnections, checkSettings } = await import('#gateway');
  const log = createLogger({ level: 'warn', format: 'auto' }, stderr, env);
  await checkSettings(config, secrets.collectorHeaders, log);
  const notices = findNotices(config);
  for (const { text } of notices) stderr.write(`gateway: notice: ${text}\n`);
  if (!values.connect) {
    stdout.write(`# ${toOneLine(path)} is valid. With all defaults:\n${printConfig(config, fromFiles)}`);
    return 0;
  }
  const checks = await checkConnections(secured, secrets.collectorHeaders);
  const isOk = checks.every((each) => each.isOk);
  if (values.json) printJson(stdout, { ok: isOk, checks: checks.map(toJson), notices });
  else {
    stdout.write(toTable(HEAD, checks.map(toRow), { paint: createPaint(stdout, env) }));
  }
  return isOk ? 0 : 1;
}

/**
 * Reads the certificates, as the gateway does at its start. Rejects with an UnusableSettingError if it could not use them, or if
 * one has expired; warns of those that soon will.
 */
async function withCertificates(config: Config, stderr: Invocation['stderr']): Promise<SecuredConfig> {
  const certificates = await createCertificateReader()(config);
  const expiring = findExpiring(config, certificates, Date.now());
  const expired = expiring.find(({ isExpired }) => isExpired);
  if (expired !== undefined) throw new UnusableSettingError(`${expired.where} expired on ${expired.day}`);
  for (const { where, day } of expiring) stderr.write(`gateway: warning: ${where} expires on ${day}\n`);
  return { ...config, replicas: certificates.replicas };
}

/** What works, and what few want. */
interface Notice {
  readonly id: string;
  readonly text: string;
  /** What to add to the file; null: that depends. */
  readonly line: string | null;
}

function findNotices(config: Config): readonly Notice[] {
  return [...findHealthNotices(config), ...findPriceNotices(config)];
}

function findHealthNotices({ health }: Config): readonly Notice[] {
  if (hasHealthChecks(health)) return [];
  const line = 'health: {}';
  const text = `health checks are off: a replica that fails still gets its share of the requests. To turn them on, add the line "${line}"`;
  return [{ id: 'health_checks_off', text, line }];
}

/** Where some requests have a cost and others have none, their sum is not what all of them cost. */
function findPriceNotices({ replicas, gpuHourPrice }: Config): readonly Notice[] {
  const priced = replicas.filter((replica) => replica.gpuHourPrice !== null);
  if (priced.length === 0 && Object.keys(gpuHourPrice).length === 0) return [];
  const unpriced = replicas.filter((replica) => replica.gpuHourPrice === null);
  const uncounted = priced.filter(({ gpuCount }) => !gpuCount);
  return [
    ...toPriceNotice('gpu_hour_price_missing', unpriced, 'no gpu_hour_price'),
    ...toPriceNotice('gpu_count_missing', uncounted, 'a gpu_hour_price and no gpu_count'),
  ];
}

function toPriceNotice(id: string, replicas: Config['replicas'], what: string): readonly Notice[] {
  if (replicas.length === 0) return [];
  const [first, ...more] = replicas.map(({ name }) => name);
  const named = more.length === 0 ? `replica ${first} has` : `replica ${first} and ${more.length} more have`;
  return [{ id, text: `${named} ${what}: what requests cost there is in no sum`, line: null }];
}

const HEAD = ['NAME', 'TARGET', 'RESULT', { head: 'TIME', isNumber: true }, 'WHAT TO CHANGE'];

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
    kind,
    name,
    target,
    ok: isOk,
    result,
    advice,
    duration_ms: Math.round(durationMs * 10) / 10,
    ...(found ?? {}),
  };
}
