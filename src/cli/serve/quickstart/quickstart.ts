import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { StartError } from '#base';
import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, openAdmin } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { shorten } from '#cli/terminal';
import { type Config, parseConfig } from '#config';
import { readEnvironmentSecrets } from '#config/secrets';
import { createGateway } from '#gateway';
import type { RequestRecord } from '#otel/record/registry';
import { createSimulatedReplica, type SimulatedReplica } from '#simulate';
import { readKeys } from '../../operate/full-screen.ts';
import { makeSignInLink } from '../../operate/sign-in.ts';
import { createLogger } from '../log/logger.ts';
import { requireFreePorts } from './free-ports.ts';
import { toIntroduction } from './introduction.ts';
import { isInForeground, Keyboard } from './keyboard.ts';
import { SAMPLE_FEATURE } from './sample-traffic.ts';

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

/** A simulated replica that answers. */
interface RunningReplica {
  readonly name: string;
  readonly url: string;
  readonly replica: SimulatedReplica;
}

async function run(addresses: Addresses, invocation: Invocation): Promise<void> {
  const { env, pid, stdin, stdout, stderr, signals } = invocation;
  // A closed terminal ends the demo, because nobody can press Ctrl-C.
  const hungUp = new AbortController();
  signals.onHangup(() => hungUp.abort());
  const quit = new AbortController();
  const { secrets, warnings } = await readEnvironmentSecrets(env);
  const { tokens } = secrets;
  const stopped = AbortSignal.any([signals.shutdown, hungUp.signal, quit.signal]);
  const isNpmStart = env.npm_lifecycle_event === 'start';
  await requireFreePorts(
    [
      { option: 'listen', address: addresses.listen },
      { option: 'admin-listen', address: addresses.adminListen },
    ],
    isNpmStart ? 'npm start --' : 'gateway quickstart',
  );
  await using cleanUp = new AsyncDisposableStack();
  const replicas = await startReplicas(cleanUp);
  const collector = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT || null;
  const text = toConfigText({ ...addresses, replicas, exportTo: collector === null ? 'file' : 'otlp' });
  const config = parseConfig(text, { path: 'quickstart', env });

  const given = tokens.find(({ role }) => role === 'admin');
  const admin = given ?? { name: 'admin', role: 'admin' as const, token: randomBytes(16).toString('hex') };
  const log = createLogger({ level: 'info', format: 'auto', isForNewcomers: true }, stderr, env);
  const gateway = createGateway(config, {
    secrets: { ...secrets, tokens: [admin, ...tokens.filter((each) => each !== given)] },
    log,
    pid,
    onRecord: (record) => {
      if (record.feature !== SAMPLE_FEATURE) stdout.write(`${toRecordLine(record)}\n`);
    },
  });
  signals.onCrash(() => gateway.abandon());
  cleanUp.defer(async () => void (await gateway.close()));
  const { listen, adminListen } = await gateway.start();
  const configPath = await saveConfig(config, text);
  const [gatewayUrl, adminUrl] = [toUrl(listen), toUrl(adminListen)];
  const token = given === undefined ? admin.token : null;
  const client = await openAdmin(
    { admin: adminUrl },
    token === null ? env : { ...env, SVC_ADMIN_TOKEN: token },
  );
  const drained = await findDrained(client);
  const { url: signInUrl } = await makeSignInLink(client);
  const hasKeys = stdin.setRawMode !== undefined && (await isInForeground(pid));
  for (const warning of warnings) log.warn(warning);
  const introduction = { gatewayUrl, adminUrl, signInUrl, replicas, drained, token, collector, configPath };
  stdout.write(toIntroduction({ ...introduction, hasKeys }));

  if (hasKeys) {
    const [first, actor] = replicas;
    const print = (line: string) => void stdout.write(`${line}\n`);
    const demo = { client, gatewayUrl, drained: first.name, actor, print };
    const keyboard = new Keyboard(demo, stopped);
    void readKeys(stdin, (key) => void keyboard.press(key)).then(() => quit.abort());
  }
  if (!stopped.aborted) await once(stopped, 'abort');
  stdout.write('\nStopping: open requests may finish. Press Ctrl-C again to stop at once.\n');
  const { cutRequests, undeliveredRecords } = await gateway.close();
  if (cutRequests > 0) stdout.write(`${cutRequests} requests were cut short.\n`);
  if (undeliveredRecords > 0) stdout.write(`${undeliveredRecords} records did not reach the collector.\n`);
}

async function startReplicas(
  cleanUp: AsyncDisposableStack,
): Promise<readonly [RunningReplica, RunningReplica]> {
  const start = async (name: string, seed: number): Promise<RunningReplica> => {
    const replica = createSimulatedReplica({ name, seed });
    const { url } = await replica.start();
    cleanUp.defer(() => replica.close());
    return { name, url, replica };
  };
  return [await start('sim-a', 1), await start('sim-b', 2)];
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
async function findDrained(client: AdminClient): Promise<readonly string[]> {
  return itemsOf(await client.call('GET', '/admin/replicas'), 'replicas')
    .filter((replica) => memberOf(replica, 'drained') === true)
    .map((replica) => String(memberOf(replica, 'name')));
}

/** The URL of a listener for clients on this machine. */
function toUrl({ host, port }: { readonly host: string; readonly port: number }): string {
  const reachable = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** What the configuration of the quickstart sets beyond the defaults. */
interface SampleConfig {
  readonly listen: string;
  readonly adminListen: string;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  readonly exportTo: 'otlp' | 'file';
}

/** The configuration as a YAML file that users can start from, with comments. */
function toConfigText({ listen, adminListen, replicas, exportTo }: SampleConfig): string {
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
gpu_hour_price: { simulated: 2.5 } # what an hour of one GPU costs, by gpu_model; records then have their cost
currency: EUR
state_dir: ./state                # relative to this file
replicas:${replicaText.join('')}
retry: { statuses: [500, 503] }   # after these the other replica is tried, if nothing was sent to the client
health:                           # a replica that fails gets requests only if no other can take them
  frozen_after: 3s                # soon, for a demo; auto, the default, learns it from the traffic
  peers: { cool_down: 10s, ramp: 10s } # also one that is worse than the others; 1m each if you leave them out
export:
  to: ${exportTo}                        # otlp: to a collector; file: OTLP JSON lines in state_dir
`;
}

/** Quotes an unusual address of the command line, so that the schema checks it and YAML does not interpret it. */
function toYamlText(address: string): string {
  return /^[\w.-]+:\d+$/.test(address) ? address : JSON.stringify(address);
}

/** How many columns of a terminal a name takes. Those of clients may be long; the record keeps the whole name. */
const NAME_COLUMNS = 32;

/** Formats a record as one line for people, without its unknown fields. The time is UTC, as in the record. */
export function toRecordLine(record: Readonly<RequestRecord>): string {
  const { prompt_tokens, completion_tokens, cached_tokens, ttft_ms, gap_p50_ms, gap_p95_ms } = record;
  const gaps =
    gap_p50_ms === undefined || gap_p95_ms === undefined
      ? undefined
      : `${toMs(gap_p50_ms)}/${toMs(gap_p95_ms)}`;
  const parts = [
    record.ts.slice(11, 23),
    String(record.status),
    toName(record.replica ?? '-').padEnd(5),
    toName(record.model ?? '-'),
    record.endpoint.replace('/v1/', '').replace('chat/completions', 'chat').padEnd(4),
    labelled('in', prompt_tokens),
    labelled('out', completion_tokens),
    labelled('cached', cached_tokens),
    labelled('ttft', ttft_ms === undefined ? undefined : `${toMs(ttft_ms)} ms`),
    labelled('gaps', gaps === undefined ? undefined : `${gaps} ms`),
    labelled('e2e', `${toMs(record.e2e_ms)} ms`),
    labelled('tenant', record.tenant === undefined ? undefined : toName(record.tenant)),
    record.error_type === undefined ? undefined : toName(record.error_type),
    labelled('trace', record.trace_id),
  ];
  return parts.filter((part) => part !== undefined).join('  ');
}

function labelled(label: string, value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : `${label} ${value}`;
}

function toMs(ms: number): string {
  return ms < 10 ? ms.toFixed(1) : ms.toFixed(0);
}

/** Makes a name that a client chose safe for a terminal: escape sequences start with a control character. */
function toName(text: string): string {
  return shorten(text.replace(/\p{C}/gu, '?'), NAME_COLUMNS);
}
