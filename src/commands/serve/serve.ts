import { once } from 'node:events';
import { toShownName } from '#otel/encode/shown-name.ts';
import { type Config, toConfig } from '../../config/config.ts';
import type { AdminToken } from '../../config/secrets/admin-tokens.ts';
import { readEnvironmentSecrets } from '../../config/secrets/environment-secrets.ts';
import { isLoopback } from '../../config/validation/check-addresses.ts';
import { printListenAddress } from '../../config/values/values.ts';
import type { Gateway, ServingGateway } from '../../gateway.ts';
import { readVersion } from '../../version.ts';
import type { Invocation } from '../command-line/command.ts';
import { COMMANDS } from '../command-line/command-table.ts';
import { readConfigFile, requireConfigPath } from '../command-line/config-file.ts';
import { parseOptions } from '../command-line/options.ts';
import { createLogger } from './log/logger.ts';

/**
 * `gateway -config FILE`: serves until SIGINT or SIGTERM. Exits with 0 if no request was cut and every record was
 * delivered, else with 1.
 */
export async function serve({ args, env, pid, stdout, signals }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.serve.options);
  const path = requireConfigPath(values.config, env);
  const { secrets, warnings } = await readEnvironmentSecrets(env);
  const { tokens } = secrets;
  const read = () => readConfigFile(path, env);
  const file = await read();
  const config = toConfig(file);
  const log = createLogger(config.log.level, stdout);
  // A SIGHUP during the start reloads as soon as the gateway serves.
  const started = Promise.withResolvers<Gateway>();
  signals.onHangup(() => {
    const reloaded = started.promise.then((gateway) => gateway.reload());
    reloaded.catch((error) => log.error({ err: error }, 'reload failed'));
  });

  const stopped = signals.shutdown; // from here on, a signal during the start takes effect after it
  const { createGateway } = await import('../../gateway.ts'); // a wrong configuration is reported without loading it
  const readSecrets = async () => {
    const given = await readEnvironmentSecrets(env);
    for (const warning of given.warnings) log.warn(warning);
    return given.secrets;
  };
  const gateway = createGateway(config, {
    ...{ secrets, log, pid },
    configSource: { file, read, readSecrets },
  });
  signals.onCrash(() => gateway.abandon());
  const serving = await gateway.start();
  started.resolve(gateway);
  if (tokens.every(({ role }) => role !== 'admin')) log.warn(toMissingTokenWarning(tokens));
  for (const warning of warnings) log.warn(warning);
  const isHidden = isInContainer(env) && isLoopback(config.gateway.adminListen.host);
  if (isHidden && tokens.length > 0) log.info({}, HIDDEN_ADMIN);
  log.info({ version: await readVersion(), ...toStartFields(serving, config) }, 'serving');

  if (!stopped.aborted) await once(stopped, 'abort');
  log.info('shutting down');
  const { cutRequests, undeliveredRecords } = await gateway.close();
  log.info({ cutRequests, undeliveredRecords }, 'stopped');
  return cutRequests === 0 && undeliveredRecords === 0 ? 0 : 1;
}

const HIDDEN_ADMIN =
  'the admin API is reached only from inside this container: gateway.admin_listen 0.0.0.0:9090 opens it to others';

/** Podman, systemd-nspawn and our image set `container`; Kubernetes sets the address of its API in every pod. */
function isInContainer({ container, KUBERNETES_SERVICE_HOST }: Invocation['env']): boolean {
  return Boolean(container || KUBERNETES_SERVICE_HOST);
}

/** What the admin API refuses without an admin token. The tokens are in the order of their roles, strongest first. */
function toMissingTokenWarning([strongest]: readonly AdminToken[]): string {
  const exceptions = strongest?.role === 'operator' ? ' but a GET, a drain or an undrain' : ' but a GET';
  const consequence = `the admin API refuses every call${strongest === undefined ? '' : exceptions}`;
  return `SVC_ADMIN_TOKEN is not set: ${consequence}`;
}

/** How many models the line about the start names. */
const MAX_NAMED_MODELS = 20;

/** What the gateway serves, and where. */
function toStartFields(serving: ServingGateway, { stateDir }: Config): object {
  const { listen, adminListen, workerCount, replicaCount, models, collector } = serving;
  const more = models.length - MAX_NAMED_MODELS;
  return {
    listen: printListenAddress(listen),
    adminListen: printListenAddress(adminListen),
    workers: workerCount,
    replicas: replicaCount,
    models: [
      ...models.slice(0, MAX_NAMED_MODELS).map((name) => toShownName(name)),
      ...(more > 0 ? [`and ${more} more`] : []),
    ],
    ...(collector === null ? { recordFiles: stateDir } : { collector }),
  };
}
