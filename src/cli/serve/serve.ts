import { once } from 'node:events';
import { resolve } from 'node:path';
import { readVersion } from '#base/embedded';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, readConfigFile, requireConfigPath } from '#cli/command';
import type { Config } from '#config';
import { isLoopback, printListenAddress } from '#config/addresses';
import {
  type AdminToken,
  allows,
  type NeededRole,
  readEnvironmentSecrets,
  TOKEN_VARIABLES,
} from '#config/secrets';
import type { Gateway, ServingGateway } from '#gateway';
import { toShownName } from '#otel/base';
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
  let loaded = await readConfigFile(path, env);
  const { config } = loaded;
  const log = createLogger(config.log, stdout, env);
  // A SIGHUP during the start reloads as soon as the gateway serves.
  const started = Promise.withResolvers<Gateway>();
  signals.onHangup(() => {
    const reloaded = started.promise.then((gateway) => gateway.reload());
    reloaded.catch((error) => log.error({ err: error }, 'reload failed'));
  });

  const stopped = signals.shutdown;
  const { createGateway } = await import('#gateway'); // a wrong configuration is reported without loading it
  const { ConfigFiles } = await import('#config');
  const files = new ConfigFiles();
  files.adopt(loaded.files);
  const read = async () => {
    loaded = await readConfigFile(path, env);
    return loaded.config;
  };
  const readSecrets = async () => {
    const given = await readEnvironmentSecrets(env);
    for (const warning of given.warnings) log.warn(warning);
    return given.secrets;
  };
  const gateway = createGateway(config, {
    secrets,
    log,
    pid,
    configSource: {
      config,
      path: resolve(path),
      read,
      readSecrets,
      adopted: () => files.adopt(loaded.files),
      findChanged: () => files.findChanged(),
    },
    lostLogLines: () => stdout.loss ?? { lost: 0, reason: '' },
    rehearses: true,
  });
  signals.onCrash(() => gateway.abandon());
  const serving = await gateway.start(stopped).catch((error: unknown) => {
    if (error !== stopped.reason) throw error;
    return null;
  });
  if (serving === null) {
    log.info({ cutRequests: 0, undeliveredRecords: 0 }, 'stopped');
    return 0;
  }
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

/** What the admin API refuses because no token allows it, and the weakest tokens that would. */
function toMissingTokenWarning(tokens: readonly AdminToken[]): string {
  const isAllowed = (needed: NeededRole) => tokens.some(({ role }) => allows(role, needed));
  const missing = CALLS.filter(({ needed }) => !isAllowed(needed));
  const calls = missing.map(({ call, needed }) => `${call} needs ${TOKEN_VARIABLES[needed]}`);
  const refused = missing.length === CALLS.length ? 'every call' : 'some calls';
  return `the admin API refuses ${refused} because of missing tokens: ${calls.join(', ')}`;
}

/** A call for each role. */
const CALLS = [
  { call: 'a GET', needed: 'reader' },
  { call: 'a drain', needed: 'operator' },
  { call: 'a reload', needed: 'admin' },
] as const;

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
