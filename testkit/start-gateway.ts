import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { parseConfig } from '#config';
import type { AdminToken, EnvironmentSecrets } from '#config/secrets';
import { type CloseResult, createGateway } from '#gateway';
import type { RequestRecord } from '#otel/record/registry';
import type { Resolver } from '#replicas/discovery';
import { NO_SECRETS } from '../src/config/secrets/environment-secrets.ts';
import { askUntil } from './ask-until.ts';
import { EventLog } from './event-log.ts';

/** The token of the admin API in tests. */
export const ADMIN_TOKEN = 'test-admin-token';

/** A replica as the configuration file names it; all but name and url have defaults. */
export interface ConfiguredReplica {
  readonly name: string;
  readonly url: string;
  readonly models?: 'auto' | readonly string[];
  readonly engine?: string;
  readonly api_key?: string;
  readonly host?: string;
  readonly gpu_model?: string;
  readonly gpu_count?: number;
  readonly gpu_hour_price?: number;
  readonly max_inflight?: number;
  readonly role?: 'serve' | 'shadow';
  readonly tls?: Readonly<Record<string, unknown>>;
}

type ConfigSection = Readonly<Record<string, unknown>> | readonly (object | string)[] | string | boolean;

export interface StartGatewayOptions {
  /** They serve the model `m` and are of the engine `openai`, unless they say otherwise. */
  readonly replicas: readonly ConfiguredReplica[];
  /** Entries of the list of replicas as the file has them, behind the others. */
  readonly services?: readonly {
    readonly name: string;
    readonly dns?: string;
    readonly kubernetes?: object;
    readonly [key: string]: unknown;
  }[];
  /** Who is behind the names of services. */
  readonly resolver?: Resolver;
  /** Sections of the configuration file, laid over the defaults of tests key by key; lists and texts as they are. */
  readonly config?: Readonly<Record<string, ConfigSection>>;
  /** Where records go; without one, to a file in state_dir. */
  readonly collector?: { readonly url: string };
  /** `null`: no admin token. */
  readonly adminToken?: string | null;
  /** Default: no read-only token. */
  readonly readToken?: string;
  /** Further tokens. */
  readonly moreTokens?: readonly AdminToken[];
  /** Reads secrets again at each reload; the others, and all without it, stay as they are. */
  readonly readSecrets?: () => Promise<Partial<EnvironmentSecrets>>;
  /** Headers for the collector. */
  readonly collectorHeaders?: EnvironmentSecrets['collectorHeaders'];
  readonly hashSalt?: string;
  /** Default: a temporary directory, removed when the gateway is closed. */
  readonly stateDir?: string;
  /** Default: nothing is rehearsed. */
  readonly rehearses?: boolean;
  /** Called with each record before the test has it; what it throws, the gateway gets. */
  readonly onRecord?: (record: Readonly<RequestRecord>) => void;
  /** Called with each line of the log before it is kept; what it throws, the gateway gets. */
  readonly onLogLine?: (line: string) => void;
}

/** A replica as the admin API shows it. */
export interface ReplicaAnswer {
  readonly name: string;
  readonly url: string;
  readonly models: readonly string[] | null;
  readonly drained: boolean;
  readonly inflight: number;
  readonly background: number;
  readonly background_unknown: number;
  readonly silent_streams: {
    readonly count: number;
    readonly running: number;
    readonly oldest_ms: number | null;
  };
  readonly since: string | null;
  readonly reason: string | null;
  readonly safe_to_stop: boolean | null;
  readonly removing: boolean;
  readonly health: 'ok' | 'failing' | null;
  readonly health_reasons: readonly string[];
  readonly health_since: string | null;
  readonly reachability: 'reachable' | 'unreachable' | 'loading' | 'unknown';
  readonly reachability_since: string | null;
  readonly reachability_reason: string | null;
  readonly engine: string;
}

/** A gateway that runs in this process, on free ports. */
export interface StartedGateway extends AsyncDisposable {
  readonly url: string;
  readonly adminUrl: string;
  readonly stateDir: string;
  /** The finished records, oldest first. */
  readonly records: readonly Readonly<RequestRecord>[];
  /** The log, one JSON object a line. */
  readonly logLines: readonly string[];
  /** Resolves when a line of the log holds this text; with that line. */
  untilLogged(text: string): Promise<string>;
  /** The oldest record that was not asked for yet. */
  nextRecord(): Promise<Readonly<RequestRecord>>;
  /** The records as soon as there are at least this many. */
  waitForRecords(count: number): Promise<readonly Readonly<RequestRecord>[]>;
  /** POSTs a body, as JSON unless it is bytes or text already. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
  /** POSTs a chat completion for the model `m`. */
  chat(members?: object, init?: RequestInit): Promise<Response>;
  /** Calls the admin API with its token. */
  admin(path: string, init?: RequestInit): Promise<Response>;
  /** Changes the configuration file: options other than those of the start, or a text. A reload reads it. */
  writeConfig(changes: Partial<StartGatewayOptions> | string): void;
  /** POST /admin/reload. */
  reload(): Promise<Response>;
  /** The replicas as GET /admin/replicas shows them. */
  replicas(): Promise<readonly ReplicaAnswer[]>;
  /** Resolves with a replica as soon as its reachability is this one. Each look is a call of the admin API. */
  untilReachability(name: string, reachability: ReplicaAnswer['reachability']): Promise<ReplicaAnswer>;
  /** The counters of GET /admin/stats. */
  stats(): Promise<Readonly<Record<string, number>>>;
  /** The whole shutdown. Idempotent. */
  close(): Promise<CloseResult>;
}

/** The tokens of the admin API; an empty one is none. */
function toTokens(options: StartGatewayOptions): readonly AdminToken[] {
  const { adminToken = ADMIN_TOKEN, readToken, moreTokens = [] } = options;
  return [
    ...(adminToken ? [{ name: 'admin', role: 'admin' as const, token: adminToken }] : []),
    ...(readToken === undefined ? [] : [{ name: 'reader', role: 'reader' as const, token: readToken }]),
    ...moreTokens,
  ];
}

/** Starts a gateway. Rejects with what `parseConfig` or `start` reject with. */
export async function startGateway(options: StartGatewayOptions): Promise<StartedGateway> {
  const ownDir = options.stateDir === undefined ? await mkdtemp(join(tmpdir(), 'spangate-')) : null;
  const stateDir = options.stateDir ?? join(ownDir ?? '', 'state');
  const { adminToken = ADMIN_TOKEN, hashSalt = 'test-salt' } = options;
  let configText = JSON.stringify(toConfigFile(options, stateDir));
  const readConfig = () => parseConfig(configText, { path: 'gateway.yaml', env: {} });
  const config = readConfig();
  const records = new EventLog<Readonly<RequestRecord>>();
  const logLines = new EventLog<string>();
  const { collectorHeaders = NO_SECRETS.collectorHeaders } = options;
  const secrets = { hashSalt, tokens: toTokens(options), collectorHeaders };
  const gateway = createGateway(config, {
    configSource: {
      config,
      path: 'gateway.yaml',
      read: async () => readConfig(),
      readSecrets: async () => ({ ...secrets, ...(await options.readSecrets?.()) }),
    },
    ...(options.resolver === undefined ? {} : { resolver: options.resolver }),
    rehearses: options.rehearses ?? false,
    secrets,
    log: pino({ level: 'trace' }, toLines(logLines, options.onLogLine)),
    pid: process.pid,
    onRecord: (record) => {
      options.onRecord?.(record);
      records.push(record);
    },
  });
  const { listen, adminListen } = await gateway.start();
  const schemeOf = (tls: unknown) => (tls === null ? 'http' : 'https');
  const url = `${schemeOf(config.gateway.tls)}://${listen.host}:${listen.port}`;
  const adminUrl = `${schemeOf(config.gateway.adminTls)}://${adminListen.host}:${adminListen.port}`;

  const close = async () => {
    const result = await gateway.close();
    if (ownDir !== null) await rm(ownDir, { recursive: true, force: true });
    return result;
  };
  const post = (path: string, body: unknown, init: RequestInit = {}) => {
    const isBytes = typeof body === 'string' || body instanceof Uint8Array;
    const headers = new Headers({ 'Content-Type': 'application/json' });
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    return fetch(url + path, {
      ...init,
      method: 'POST',
      body: isBytes ? (body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(body),
      headers,
    });
  };
  const admin = (path: string, init: RequestInit = {}) =>
    fetch(adminUrl + path, { ...init, headers: { Authorization: `Bearer ${adminToken}` } });
  const listReplicas = async () =>
    ((await (await admin('/admin/replicas')).json()) as { replicas: readonly ReplicaAnswer[] }).replicas;
  return {
    url,
    adminUrl,
    stateDir,
    records: records.items,
    logLines: logLines.items,
    untilLogged: async (text) => {
      const find = () => logLines.items.find((line) => line.includes(text));
      await logLines.until(() => find() !== undefined);
      return find() ?? '';
    },
    nextRecord: () => records.next(),
    waitForRecords: (count) => records.count(count),
    post,
    chat: (members = {}, init = {}) =>
      post(
        '/v1/chat/completions',
        { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...members },
        init,
      ),
    admin,
    writeConfig: (changes) => {
      configText =
        typeof changes === 'string'
          ? changes
          : JSON.stringify(toConfigFile({ ...options, ...changes }, stateDir));
    },
    reload: () => admin('/admin/reload', { method: 'POST' }),
    replicas: listReplicas,
    untilReachability: async (name, reachability) => {
      const find = async () => (await listReplicas()).find((each) => each.name === name);
      const found = await askUntil(find, (replica) => replica?.reachability === reachability);
      if (found === undefined) throw new Error(`there is no replica ${name}`);
      return found;
    },
    stats: async () => (await (await admin('/admin/stats')).json()) as Record<string, number>,
    close,
    [Symbol.asyncDispose]: async () => {
      await close();
    },
  };
}

function toConfigFile(options: StartGatewayOptions, stateDir: string): object {
  const { replicas, services = [], config = {}, collector } = options;
  const sections: Record<string, ConfigSection> = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    export: collector === undefined ? { to: 'file' } : { endpoint: collector.url, interval: '10ms' },
    metrics: { otlp: false },
    shutdown: { grace: '5s', flush: '5s' },
  };
  for (const [name, section] of Object.entries(config)) {
    const isSection = typeof section === 'object' && !Array.isArray(section);
    sections[name] = isSection ? { ...(sections[name] as object), ...section } : section;
  }
  // A test that wants the thread of the history says so.
  sections.history ??= 'off';
  return {
    ...sections,
    state_dir: stateDir,
    replicas: [
      ...replicas.map(({ name, url, models = ['m'], engine = 'openai', ...rest }) => ({
        name,
        url,
        models,
        engine,
        ...pickConfigured(rest),
      })),
      ...services,
    ],
  };
}

/** The keys of the configuration file only: a fake replica can be passed as it is. */
function pickConfigured(replica: Partial<ConfiguredReplica>): Partial<ConfiguredReplica> {
  const { api_key, host, gpu_model, gpu_count, gpu_hour_price, max_inflight, role, tls } = replica;
  return Object.fromEntries(
    Object.entries({ api_key, host, gpu_model, gpu_count, gpu_hour_price, max_inflight, role, tls }).filter(
      ([, value]) => value !== undefined,
    ),
  );
}

function toLines(lines: EventLog<string>, onLine?: (line: string) => void): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      const line = chunk.toString('utf8').trimEnd();
      done();
      onLine?.(line);
      lines.push(line);
    },
  });
}
