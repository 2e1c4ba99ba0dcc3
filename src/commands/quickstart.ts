import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Config } from '../config/config.ts';
import { parseConfig } from '../config/load.ts';
import { createGateway } from '../gateway.ts';
import { createSimulatedReplica } from '../simulate/create-replica.ts';
import { StartError } from '../start-error.ts';
import { readAdminToken } from './admin/token.ts';
import type { Invocation } from './command-line/command.ts';
import { parseOptions } from './command-line/options.ts';
import { createLogger } from './log/logger.ts';
import { toConfigText } from './quickstart-config.ts';
import { toUrl, toWelcome } from './quickstart-welcome.ts';
import { toRecordLine } from './terminal/record-line.ts';

const USAGE = `Usage: gateway quickstart [options]

Starts two simulated replicas and a gateway in front of them, and prints a line for each request's record.

  --listen HOST:PORT        where clients connect (default 127.0.0.1:8080)
  --admin-listen HOST:PORT  where the admin API listens (default 127.0.0.1:9090)

SVC_ADMIN_TOKEN is the admin API's token; without it one is made up. With OTEL_EXPORTER_OTLP_ENDPOINT or
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT the records go to that collector, otherwise to a file in ./state.
`;

const OPTIONS = {
  listen: { type: 'string', default: '127.0.0.1:8080' },
  'admin-listen': { type: 'string', default: '127.0.0.1:9090' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Runs until the first signal. Throws UsageError, ConfigError or StartError. */
export async function quickstart(invocation: Invocation): Promise<number> {
  const { values } = parseOptions(invocation.args, OPTIONS);
  if (values.help) invocation.stdout.write(USAGE);
  else await run({ listen: values.listen, adminListen: values['admin-listen'] }, invocation);
  return 0;
}

interface Addresses {
  readonly listen: string;
  readonly adminListen: string;
}

async function run(addresses: Addresses, { env, stdout, stderr, signals }: Invocation): Promise<void> {
  // The terminal is closed: nobody will press Ctrl-C.
  const hungUp = new AbortController();
  signals.onHangup(() => hungUp.abort());
  const given = readAdminToken(env);
  const stopped = AbortSignal.any([signals.shutdown, hungUp.signal]);
  await using cleanUp = new AsyncDisposableStack();
  const replicas = await Promise.all(
    ['sim-a', 'sim-b'].map(async (name, index) => {
      const replica = createSimulatedReplica({ name, seed: index + 1 });
      const { url } = await replica.start();
      cleanUp.defer(() => replica.close());
      return { name, url };
    }),
  );
  const collector = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT || null;
  const text = toConfigText({ ...addresses, replicas, exportTo: collector === null ? 'file' : 'otlp' });
  const config = parseConfig(text, { path: 'quickstart', env });

  const adminToken = given.token ?? randomBytes(16).toString('hex');
  const log = createLogger('warn', stderr);
  const gateway = createGateway(config, {
    env: { adminToken, ...(env.SVC_HASH_SALT ? { hashSalt: env.SVC_HASH_SALT } : {}) },
    log,
    onRecord: (record) => stdout.write(`${toRecordLine(record)}\n`),
  });
  signals.onCrash(() => gateway.abandon());
  cleanUp.defer(async () => void (await gateway.close()));
  const { listen, adminListen } = await gateway.start();
  const configPath = await saveConfig(config, text);
  const [gatewayUrl, adminUrl] = [toUrl(listen), toUrl(adminListen)];
  const drained = await findDrained(adminUrl, adminToken);
  const token = given.token === null ? adminToken : null;
  for (const warning of given.warnings) log.warn(warning);
  stdout.write(toWelcome({ gatewayUrl, adminUrl, replicas, drained, token, collector, configPath }));

  if (!stopped.aborted) await once(stopped, 'abort');
  stdout.write('\nStopping: open requests may finish; a second Ctrl-C does not wait for them.\n');
  const { cutRequests, undeliveredRecords } = await gateway.close();
  if (cutRequests > 0) stdout.write(`${cutRequests} requests were cut short.\n`);
  if (undeliveredRecords > 0) stdout.write(`${undeliveredRecords} records did not reach the collector.\n`);
}

/** Puts the configuration where it can be copied from; the path is relative to the working directory. */
async function saveConfig({ stateDir }: Config, text: string): Promise<string> {
  const path = join(stateDir, 'quickstart.yaml');
  try {
    await writeFile(path, text, { mode: 0o600 });
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? `: ${String(error.code)}` : '';
    throw new StartError(`cannot write ${path}${reason}`, error);
  }
  return relative('', path);
}

/** Drains outlive a restart: whoever starts again should know why a replica gets nothing. */
async function findDrained(adminUrl: string, token: string): Promise<readonly string[]> {
  const response = await fetch(`${adminUrl}/admin/replicas`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const { replicas } = (await response.json()) as { replicas: { name: string; drained: boolean }[] };
  return replicas.filter(({ drained }) => drained).map(({ name }) => name);
}
