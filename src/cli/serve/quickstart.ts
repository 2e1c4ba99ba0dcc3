import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { StartError } from '#base';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { type Config, parseConfig } from '#config';
import { readEnvironmentSecrets } from '#config/secrets';
import { createGateway } from '#gateway';
import { createSimulatedReplica } from '#simulate';
import { toRecordLine } from '../tables/record-line.ts';
import { createLogger } from './log/logger.ts';

/** `gateway quickstart`: runs a demo until the first signal. Throws a UsageError, ConfigError or StartError. */
export async function quickstart(invocation: Invocation): Promise<number> {
  const { values } = parseOptions(invocation.args, COMMANDS.quickstart.options);
  const { listen = '127.0.0.1:8080', 'admin-listen': adminListen = '127.0.0.1:9090' } = values;
  await run({ listen, adminListen }, invocation);
  return 0;
}

interface Addresses {
  readonly listen: string;
  readonly adminListen: string;
}

async function run(addresses: Addresses, { env, pid, stdout, stderr, signals }: Invocation): Promise<void> {
  // A closed terminal ends the demo, because nobody can press Ctrl-C.
  const hungUp = new AbortController();
  signals.onHangup(() => hungUp.abort());
  const { secrets, warnings } = await readEnvironmentSecrets(env);
  const { tokens } = secrets;
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

  const given = tokens.find(({ role }) => role === 'admin');
  const admin = given ?? { name: 'admin', role: 'admin' as const, token: randomBytes(16).toString('hex') };
  const log = createLogger({ level: 'warn', format: 'auto' }, stderr, env);
  const gateway = createGateway(config, {
    secrets: { ...secrets, tokens: [admin, ...tokens.filter((each) => each !== given)] },
    log,
    pid,
    onRecord: (record) => stdout.write(`${toRecordLine(record)}\n`),
  });
  signals.onCrash(() => gateway.abandon());
  cleanUp.defer(async () => void (await gateway.close()));
  const { listen, adminListen } = await gateway.start();
  const configPath = await saveConfig(config, text);
  const [gatewayUrl, adminUrl] = [toUrl(listen), toUrl(adminListen)];
  const drained = await findDrained(adminUrl, admin.token);
  const token = given === undefined ? admin.token : null;
  for (const warning of warnings) log.warn(warning);
  stdout.write(toIntroduction({ gatewayUrl, adminUrl, replicas, drained, token, collector, configPath }));

  if (!stopped.aborted) await once(stopped, 'abort');
  stdout.write('\nStopping: open requests may finish. Press Ctrl-C again to stop at once.\n');
  const { cutRequests, undeliveredRecords } = await gateway.close();
  if (cutRequests > 0) stdout.write(`${cutRequests} requests were cut short.\n`);
  if (undeliveredRecords > 0) stdout.write(`${undeliveredRecords} records did not reach the collector.\n`);
}

/** Saves the configuration as a file to copy. Returns its path relative to the working directory. */
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

/** Returns the names of replicas that are still drained: drains survive a restart. */
async function findDrained(adminUrl: string, token: string): Promise<readonly string[]> {
  const response = await fetch(`${adminUrl}/admin/replicas`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const { replicas } = (await response.json()) as { replicas: { name: string; drained: boolean }[] };
  return replicas.filter(({ drained }) => drained).map(({ name }) => name);
}

/** What the configuration of the quickstart sets beyond the defaults. */
interface QuickstartConfig extends Addresses {
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  readonly exportTo: 'otlp' | 'file';
}

/** The configuration as a YAML file that users can start from, with comments. */
function toConfigText({ listen, adminListen, replicas, exportTo }: QuickstartConfig): string {
  const replicaText = replicas.map(
    ({ name, url }, index) => `
  - name: ${name}
    url: ${url}
    host: sim-node-${index + 1}
    gpu_model: simulated
    gpu_count: 1
    models: [demo]                # or auto: read from its /v1/models
    engine: vllm                  # or auto: detected from its /v1/models`,
  );
  return `# The configuration of the quickstart. Copy this file, replace the replicas by your own, and serve it:
#   npx gateway -config gateway.yaml
gateway:
  listen: ${toYamlText(listen)}
  admin_listen: ${toYamlText(adminListen)}
headers: { tenant: X-Tenant, feature: X-Feature }
state_dir: ./state                # relative to this file
replicas:${replicaText.join('')}
health: {}                        # a replica that fails gets requests only if no other can take them
export:
  to: ${exportTo}                        # otlp: to a collector; file: OTLP JSON lines in state_dir
`;
}

/** Quotes an unusual address of the command line, so that the schema checks it and YAML does not interpret it. */
function toYamlText(address: string): string {
  return /^[\w.-]+:\d+$/.test(address) ? address : JSON.stringify(address);
}

/** What the introduction describes. URLs have no trailing slash. */
interface RunningDemo {
  readonly gatewayUrl: string;
  readonly adminUrl: string;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  /** Names of replicas that are still drained from an earlier run. */
  readonly drained: readonly string[];
  /** The generated admin token; null if the user has set one, which is not printed. */
  readonly token: string | null;
  /** The collector's URL; null if records go to a file. */
  readonly collector: string | null;
  /** Where the configuration was saved. */
  readonly configPath: string;
}

/** Describes what is running and what to try. The commands work when pasted into a shell. */
function toIntroduction(demo: RunningDemo): string {
  const { gatewayUrl, adminUrl, replicas, drained, token, collector, configPath } = demo;
  const toNote = (name: string): string => (drained.includes(name) ? ' (still drained)' : '');
  const records =
    collector === null
      ? 'state/records.jsonl, as OTLP JSON lines'
      : `sent to the collector at ${withoutSecrets(collector)}`;
  return `
Spangate is running, with two simulated replicas behind it.

  gateway   ${gatewayUrl}/v1  (OpenAI API, model "demo")
  dashboard ${adminUrl}/  (asks for the admin token)
  admin     ${adminUrl}/admin  (token ${token ?? 'as in SVC_ADMIN_TOKEN'})
  replicas  ${replicas.map(({ name, url }) => `${name} ${url}${toNote(name)}`).join(', ')}
  records   ${records}
  config    ${configPath}  (copy it for your own: npx gateway -config FILE)

Send a streaming request:

  curl -N ${gatewayUrl}/v1/chat/completions -H 'Content-Type: application/json' -H 'X-Tenant: acme' \\
    -d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"What is a gateway?"}]}'

${toDrainHint(demo)}

The record of each request appears as a line below. Press Ctrl-C to stop.

`;
}

/** Suggests a drain, or an undrain if a replica is still drained from an earlier run. */
function toDrainHint({ adminUrl, replicas, drained, token }: RunningDemo): string {
  const [stillDrained] = drained;
  const name = stillDrained ?? replicas[0]?.name ?? '';
  const action = stillDrained === undefined ? 'drain' : 'undrain';
  const title =
    action === 'drain'
      ? `Drain a replica: new requests then go to the other one, until you undrain it:`
      : `Undrain the replica that is still drained from an earlier run:`;
  return `${title}

  curl -X POST ${adminUrl}/admin/replicas/${name}/${action} -H "Authorization: Bearer ${token ?? '$SVC_ADMIN_TOKEN'}"`;
}

/** The URL of a listener for clients on this machine. */
function toUrl({ host, port }: { readonly host: string; readonly port: number }): string {
  const reachable = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** The URL of a collector may contain credentials. */
function withoutSecrets(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'the URL in the environment';
}
