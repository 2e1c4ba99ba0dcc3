import { once } from 'node:events';
import { toConfig } from '../config/config.ts';
import { printListenAddress } from '../config/values.ts';
import type { Gateway } from '../gateway.ts';
import { readAdminToken } from './admin/token.ts';
import type { Invocation } from './command-line/command.ts';
import { readConfigFile, requireConfigPath } from './command-line/config-file.ts';
import { configOption, parseOptions } from './command-line/options.ts';
import { createLogger } from './log/logger.ts';

/**
 * `gateway -config FILE`: serves until SIGINT or SIGTERM. Exits with 0 if no request was cut and every record was
 * delivered, else with 1.
 */
export async function serve({ args, env, pid, stdout, signals }: Invocation): Promise<number> {
  const { values } = parseOptions(args, configOption);
  const path = requireConfigPath(values.config, env);
  const { token, warnings } = readAdminToken(env);
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
  const { createGateway } = await import('../gateway.ts'); // a wrong configuration is reported without loading it
  const gateway = createGateway(config, {
    ...{ env: toSecrets(token, env), log, pid },
    configSource: { file, read },
  });
  signals.onCrash(() => gateway.abandon());
  const { listen, adminListen } = await gateway.start();
  started.resolve(gateway);
  if (token === null) log.warn('SVC_ADMIN_TOKEN is not set: the admin API refuses every call');
  for (const warning of warnings) log.warn(warning);
  log.info({ listen: printListenAddress(listen), adminListen: printListenAddress(adminListen) }, 'serving');

  if (!stopped.aborted) await once(stopped, 'abort');
  log.info('shutting down');
  const { cutRequests, undeliveredRecords } = await gateway.close();
  log.info({ cutRequests, undeliveredRecords }, 'stopped');
  return cutRequests === 0 && undeliveredRecords === 0 ? 0 : 1;
}

/** An empty variable counts as unset. */
function toSecrets(token: string | null, { SVC_HASH_SALT }: Invocation['env']) {
  return {
    ...(token === null ? {} : { adminToken: token }),
    ...(SVC_HASH_SALT ? { hashSalt: SVC_HASH_SALT } : {}),
  };
}
