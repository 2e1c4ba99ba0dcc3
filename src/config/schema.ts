import { z } from 'zod';
import { apiClient, tenantLimits } from './schema/clients.ts';
import { health } from './schema/health.ts';
import { jwt } from './schema/jwt.ts';
import { kubernetesSource } from './schema/kubernetes.ts';
import { listenerTls, replicaTls } from './schema/tls.ts';
import {
  apiKey,
  baseUrl,
  duration,
  flag,
  listenAddress,
  network,
  oneOf,
  passedPath,
  redisUrl,
  replicaUrl,
  retriedStatus,
  serviceUrl,
  size,
  text,
  traceUrlTemplate,
  wholeNumber,
  wholeNumberOrAuto,
} from './values/codecs.ts';
import { parseCollectorUrl } from './values/values.ts';

const NAMED = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/; // a URL path segment that needs no escaping
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/; // a token: RFC 9110 5.6.2
const ADMIN_HOST = /^(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?$/;
const MODEL_NAME = /^(?!\*$)[^\p{Cc}]{1,256}$/u;
const ONE_LINE = /^[^\p{Cc}]{1,256}$/u;

/** The engines whose API the gateway knows. */
const engines = ['vllm', 'sglang', 'llamacpp', 'tgi', 'ollama', 'openai'] as const;

/** The endpoints that are recorded beside those that are always on. Each may stand for several paths. */
const furtherEndpoints = [
  'responses',
  'messages',
  'rerank',
  'score',
  'classify',
  'pooling',
  'tokenize',
  'detokenize',
  'audio/transcriptions',
  'audio/translations',
] as const;

const plainName = () => text('a name of letters, digits and . _ ~ -, at most 128', NAMED);
const oneLine = () => text('a text of one line', ONE_LINE);
const headerName = () => text('the name of a request header', HEADER_NAME);

const modelsTitle = 'auto, ["*"], or a list of different model names';
const modelName = z.string({ error: modelsTitle }).min(1, { error: modelsTitle });
const modelList = z.array(modelName).min(1, { error: modelsTitle });
const models = z
  .union([z.literal('auto'), modelList], { error: modelsTitle })
  .refine((names) => names === 'auto' || isModelList(names), { error: modelsTitle })
  .meta({ title: modelsTitle });

function isModelList(names: readonly string[]): boolean {
  return new Set(names).size === names.length && (names.length === 1 || !names.includes('*'));
}

const replica = z
  .strictObject({
    name: text('a unique name of letters, digits and . _ ~ -, at most 128', NAMED).describe(
      'The name of the replica in records and in the paths of the admin API.',
    ),
    url: replicaUrl('put a key into api_key')
      .optional()
      .describe(
        'The base URL of the replica, with or without `/v1` at its end: `http://host:8000` and `http://host:8000/v1` mean the same. Any other path is prepended to /v1/….',
      ),
    dns: serviceUrl()
      .optional()
      .describe(
        'Instead of `url`: a DNS name for several replicas. Each of its addresses is a replica (`name-10.0.0.11`), or, if the name begins with `_`, each target of its SRV records (`name-0`).',
      ),
    kubernetes: kubernetesSource
      .optional()
      .describe(
        'Instead of `url`: a Service of Kubernetes whose pods are replicas, under the names of the pods. Pods that terminate or are not ready get no new requests: see kubernetes.md.',
      ),
    host: oneLine()
      .optional()
      .describe(
        'The machine that the replica runs on. Default: the host of `url`, the target or address of `dns`, or the node of the pod.',
      ),
    gpu_model: oneLine().nullable().prefault(null).describe('The model of the accelerators.'),
    gpu_count: wholeNumber(0, 1_000_000)
      .nullable()
      .prefault(null)
      .describe(
        'The number of accelerators. With at least one, records have `gpu_seconds` (docs/metrics.md#gpu-time).',
      ),
    models: models
      .prefault('auto')
      .describe(
        'The models that the replica serves. `auto`: read from its /v1/models. `["*"]`: any model name.',
      ),
    engine: oneOf(['auto', ...engines])
      .prefault('auto')
      .describe('The inference engine. `auto`: detected from its /v1/models; tgi must be configured.'),
    api_key: apiKey()
      .optional()
      .describe(
        "The bearer token for the replica, sent instead of the client's Authorization and x-api-key.",
      ),
    tls: replicaTls.optional().describe('With an https:// URL: how the connection is secured.'),
    max_inflight: wholeNumber(1, 1_000_000)
      .nullable()
      .prefault(null)
      .describe(
        'The maximum number of requests in flight on the replica; further requests wait (see `limits.queue`). `null`: no limit.',
      ),
  })
  .meta({ oneOf: [{ required: ['url'] }, { required: ['dns'] }, { required: ['kubernetes'] }] });

const replicasTitle = 'a list of at least one replica, each with a dash before its name';
const replicas = z
  .array(replica, { error: replicasTitle })
  .min(1, { error: replicasTitle })
  .describe('The inference servers, in the order that `round_robin` uses.');

const discovery = z.strictObject({
  models_interval: duration({ minMs: 100 })
    .prefault('30s')
    .describe(
      'How often the gateway reads /v1/models of replicas, to see whether they answer and what they serve, and /version of vLLM. One that does not answer is asked about every 2 seconds.',
    ),
  dns_interval: duration({ minMs: 100 })
    .prefault('10s')
    .describe('How often DNS names in `url` and `dns` are resolved again.'),
});

const routing = z.strictObject({
  policy: oneOf(['round_robin', 'least_inflight', 'prefix_affinity'])
    .prefault('round_robin')
    .describe(
      'Which replica a request goes to: `round_robin`: the next one; `least_inflight`: the one with the fewest requests in flight; `prefix_affinity`: the one that has served requests with the same beginning.',
    ),
});

const rollout = z.strictObject({
  ramp: duration({ minMs: 0 })
    .prefault('0s')
    .describe(
      'How long the share of turns of an undrained replica grows, from 5 % of an even share to all of it, if the undrain does not say. `0s`: not at all.',
    ),
});

const hostTitle = 'a host name without a port, such as gateway.example.com or *.example.com';
const hostListTitle = 'a list of host names without ports, such as gateway.example.com or *.example.com';

const networksTitle = 'a list of IP addresses and networks, such as 10.0.0.7 and 10.0.0.0/8';

const gateway = z.strictObject({
  name: plainName()
    .optional()
    .describe('The name of this gateway among those that share state. Default: the name of the machine.'),
  listen: listenAddress().prefault('0.0.0.0:8080').describe('Where clients connect.'),
  admin_listen: listenAddress().prefault('127.0.0.1:9090').describe('Where the admin API listens.'),
  admin_hosts: z
    .array(text(hostTitle, ADMIN_HOST), { error: hostListTitle })
    .optional()
    .meta({ title: hostListTitle })
    .describe(
      'The host names under which the admin API and the dashboard are reached. Any other name in `Host` gets 421. IP addresses and localhost are always allowed. Default: none if `admin_listen` is a loopback address, else any.',
    ),
  trusted_proxies: z
    .array(network(), { error: networksTitle })
    .optional()
    .meta({ title: networksTitle })
    .describe(
      'The addresses of proxies in front of the gateway that are trusted to set headers. With `clients`, `headers.tenant` is believed and relayed from these alone: see api-keys.md.',
    ),
  workers: wholeNumberOrAuto(1, 256)
    .prefault(1)
    .describe('The number of threads that serve clients. `auto`: one per core.'),
  tls: listenerTls
    .extend({
      record_subject: flag()
        .prefault(false)
        .describe(
          "Whether the subject of the client's certificate is recorded, as `gateway.client_subject`.",
        ),
    })
    .optional()
    .describe('Clients connect over TLS. Without this section they connect without encryption.'),
  admin_tls: listenerTls.optional().describe('The same for the admin API and the dashboard.'),
});

const headers = z.strictObject({
  tenant: headerName().prefault('X-Tenant').describe('The request header that names the tenant.'),
  feature: headerName().prefault('X-Feature').describe('The request header that names the feature.'),
  conversation: headerName()
    .prefault('X-Session-Id')
    .describe('The request header that names the conversation to which a request belongs.'),
});

const exportRetry = z.strictObject({
  initial: duration().prefault('500ms').describe('The first delay; it doubles with each failed call.'),
  max: duration().prefault('5s').describe('The longest delay.'),
});

const exportFile = z.strictObject({
  max_size: size({ minBytes: 8 * 1024 ** 2 })
    .prefault('64MiB')
    .describe('records.jsonl is renamed, and a new file begun, before it exceeds this size.'),
  max_age: duration().prefault('1h').describe('records.jsonl is renamed this long after its first record.'),
  max_total: size({ minBytes: 16 * 1024 ** 2 })
    .prefault('1GiB')
    .describe('The total size of all files; the oldest are deleted when it is exceeded.'),
});

const ledger = z.strictObject({
  interval: duration()
    .prefault('1m')
    .describe(
      'The longest time between two spans `gateway.ledger`. After 1,024 records there is one sooner.',
    ),
});

const exporting = z.strictObject({
  to: oneOf(['otlp', 'file'])
    .prefault('otlp')
    .describe('`otlp`: to a collector. `file`: to OTLP JSON lines in state_dir.'),
  endpoint: baseUrl('put them into OTEL_EXPORTER_OTLP_HEADERS', parseCollectorUrl)
    .optional()
    .describe(
      'The base URL of the collector; /v1/traces is appended, unless the URL ends in it. Default: OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318.',
    ),
  protocol: oneOf(['http/protobuf', 'http/json'])
    .optional()
    .describe(
      'How the collector gets records and metrics. Default: OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf, which is half as large.',
    ),
  file: exportFile.prefault({}).describe('With `to: file`: when files are renamed and deleted.'),
  queue_size: wholeNumber(1, 10_000_000)
    .prefault(16_384)
    .describe('The maximum number of records that wait for export.'),
  queue_bytes: size({ minBytes: 1024 ** 2 })
    .prefault('256MiB')
    .describe(
      'The maximum size of these records. New records are dropped beyond either maximum. A record usually takes 1.5 KB.',
    ),
  batch_size: wholeNumber(1, 10_000_000)
    .prefault(512)
    .describe('The maximum number of records in one export call.'),
  interval: duration().prefault('1s').describe('The longest time that a record waits for its batch to fill.'),
  retry: exportRetry.prefault({}).describe('The delay between export calls that fail.'),
  ledger: ledger
    .optional()
    .describe(
      'Adds spans that say what became of the records, for `gateway verify`. An empty object, `{}`, is enough. Default: none.',
    ),
});

const metrics = z.strictObject({
  otlp: flag()
    .optional()
    .describe('Whether metrics are also pushed to the collector. Default: true if `export.to` is `otlp`.'),
  interval: duration()
    .optional()
    .describe('The time between two pushes. Default: OTEL_METRIC_EXPORT_INTERVAL, or 60s.'),
  max_names: wholeNumber(0, 1_000)
    .prefault(100)
    .describe(
      'The maximum number of tenants with metric series of their own, and of models that no known replica serves. Further ones are counted as `_OTHER`.',
    ),
});

const trace = z.strictObject({
  incoming: oneOf(['link', 'continue', 'ignore'])
    .prefault('link')
    .describe(
      "What becomes of a client's trace: `link`: the request starts a new trace, with a link to it; `continue`: the request is part of it, if the client is one of `gateway.trusted_proxies` or that is not set; `ignore`: nothing.",
    ),
  spans: oneOf(['server', 'operation', 'attempts'])
    .prefault('server')
    .describe(
      'The spans of a request: `server`: one; `operation`: also that of the inference operation, `chat {model}`; `attempts`: also one of each attempt at a replica, so that service graphs show the replicas.',
    ),
  url_template: traceUrlTemplate()
    .nullable()
    .prefault(null)
    .describe('The URL of a trace in a trace viewer, for links of the dashboard. `{trace_id}` is replaced.'),
});

const prefixHash = z.strictObject({
  block_chars: wholeNumber(1, 1_000_000)
    .prefault(512)
    .describe('The number of characters (code points) per block.'),
  max_blocks: wholeNumber(1, 4096)
    .prefault(128)
    .describe('The maximum number of blocks that are hashed per request.'),
});

const timeouts = z.strictObject({
  connect: duration()
    .prefault('2s')
    .describe('Time to connect to a replica; then the next replica is tried.'),
  first_byte: duration()
    .prefault('15m')
    .describe('Time from the written request to the response headers of a replica. Long prompts need it.'),
  idle: duration()
    .prefault('5m')
    .describe('Time without progress in a response: the replica sends nothing, or the client reads nothing.'),
  queue: duration({ minMs: 0 })
    .prefault('30s')
    .describe('Time that a request waits for a replica below its `max_inflight`, over all attempts.'),
  client_headers: duration()
    .prefault('15s')
    .describe('Time to receive all request headers of a client, from their first byte.'),
  client_body: duration().prefault('60s').describe('Time to receive all of a request body from a client.'),
  keep_alive: duration()
    .prefault('75s')
    .describe(
      'An idle connection of a client is closed after this time. Keep it above that of a load balancer in front.',
    ),
  upstream_keep_alive: duration()
    .prefault('4s')
    .describe('An idle connection to a replica is closed after this time. Engines close it after 5s.'),
});

const limits = z.strictObject({
  body: size().prefault('32MiB').describe('The maximum size of a request body.'),
  buffered: size().prefault('512MiB').describe('The maximum size of all request bodies in memory together.'),
  before_model: size({ minBytes: 1024 })
    .prefault('8MiB')
    .describe(
      'How much of a form, such as an audio file, is held while its model is not known. It is known once the part `model` has come, or, without `aliases`, if only one model is served.',
    ),
  headers: size({ minBytes: 1024 }).prefault('32KiB').describe('The maximum size of a request head.'),
  event: size({ minBytes: 1024 })
    .prefault('1MiB')
    .describe('The maximum size of a stream event that is parsed. A larger one is relayed without parsing.'),
  queue: wholeNumber(0, 1_000_000)
    .prefault(1_000)
    .describe(
      'The maximum number of requests that wait because all replicas of their model are at `max_inflight`.',
    ),
  connections: wholeNumber(1, 10_000_000)
    .prefault(10_000)
    .describe(
      'The maximum number of client connections. Each takes up to two file descriptors: where the process may open too few files, fewer connections are accepted.',
    ),
});

const shutdown = z.strictObject({
  delay: duration({ minMs: 0 })
    .prefault('0s')
    .describe('How long /healthz answers 503 before the listener closes.'),
  grace: duration({ minMs: 0 }).prefault('20s').describe('How long requests in flight may take to finish.'),
  flush: duration({ minMs: 0 }).prefault('5s').describe('How long the export of queued records may take.'),
});

const log = z.strictObject({
  level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .prefault('info')
    .describe('The lowest level that is logged.'),
  requests: flag().prefault(false).describe('Whether each request is logged as one line, without its text.'),
});

const state = z.strictObject({
  redis: redisUrl()
    .optional()
    .describe(
      'A Redis or Valkey server through which gateways share drains, the number of requests in flight, and what clients use of their limits.',
    ),
  prefix: plainName()
    .prefault('spangate')
    .describe(
      'All keys begin with this prefix in braces. Gateways with different prefixes form separate fleets.',
    ),
});

const retriedStatusesTitle = 'a list of different statuses: 429, 500, 501, 502, 503, 504';

const retry = z.strictObject({
  statuses: z
    .array(retriedStatus(), { error: retriedStatusesTitle })
    .refine((statuses) => new Set(statuses).size === statuses.length, { error: retriedStatusesTitle })
    .meta({ title: retriedStatusesTitle })
    .prefault([])
    .describe(
      'The statuses after which another replica is tried, if nothing was sent to the client. Allowed: 429 and 500 to 504. By default every answer is relayed.',
    ),
  attempts: wholeNumber(1, 10)
    .prefault(1)
    .describe('How many further replicas a request is sent to because of such a status.'),
});

const endpointsTitle = `a list of different names: ${furtherEndpoints.join(', ')}`;
const endpoints = z
  .array(oneOf(furtherEndpoints), { error: endpointsTitle })
  .refine((names) => new Set(names).size === names.length, { error: endpointsTitle })
  .meta({ title: endpointsTitle });

const passTitle = 'a list of methods and paths, such as GET /version';

const aliasesTitle = 'names with the names of models, such as gpt-4o: llama-3.3-70b';
const aliasName = () => text('the name of a model, at most 256 characters', MODEL_NAME);

const clientsTitle = 'a list of at least one client';

/** The configuration file: the single source of types, JSON Schema, reference and checks. */
export const configSchema = z.strictObject({
  gateway: gateway.prefault({}).describe('The listeners.'),
  headers: headers.prefault({}).describe('Request headers that are recorded.'),
  endpoints: endpoints
    .prefault([])
    .describe(
      'Which endpoints are relayed and recorded beside chat completions, completions and embeddings: see endpoints.md.',
    ),
  pass: z
    .array(passedPath(), { error: passTitle })
    .meta({ title: passTitle })
    .prefault([])
    .describe(
      'What is relayed to the next replica in turn and not recorded, as a method and a path, such as `GET /version`. `POST /v1/files/*` stands for all paths below `/v1/files/`: see routing.md.',
    ),
  models_listing: oneOf(['next_replica', 'union'])
    .prefault('next_replica')
    .describe(
      "What `GET /v1/models` answers: `next_replica`: that replica's own list; `union`: every model of all replicas once, and `GET /v1/models/{id}`.",
    ),
  aliases: z
    .record(aliasName(), aliasName(), { error: aliasesTitle })
    .meta({ title: aliasesTitle })
    .prefault({})
    .describe(
      'Further names of models, such as `gpt-4o: llama-3.3-70b`. The name is replaced in the request, and back in the answer: see routing.md.',
    ),
  state_dir: z
    .string({ error: 'a path' })
    .min(1, { error: 'a path' })
    .meta({ title: 'a path, relative to the directory of this file' })
    .prefault('./state')
    .describe('The directory of the salt, the drains and the exported files.'),
  state: state.prefault({}).describe('State that several gateways share: see fleet.md.'),
  replicas,
  clients: z
    .array(apiClient, { error: clientsTitle })
    .min(1, { error: clientsTitle })
    .optional()
    .describe(
      'The clients that may send requests. Without this key and `clients_file` nobody needs an API key.',
    ),
  clients_file: z
    .string({ error: 'a path' })
    .min(1, { error: 'a path' })
    .meta({ title: 'a path, relative to the directory of this file' })
    .optional()
    .describe(
      'A file with more clients: JSON lines, or a list in YAML of up to 1 MiB. It is read again when it changes.',
    ),
  jwt: jwt
    .optional()
    .describe(
      'Tokens of an issuer (JWT) that are accepted as API keys, beside `clients` or instead of them: see api-keys.md. Limits apply to each tenant.',
    ),
  tenant_limits: tenantLimits
    .optional()
    .describe(
      'Limits of each tenant over all its clients, with the keys `max_inflight`, `requests_per_minute` and `tokens_per_minute`; `default` is for every other tenant. Needs `clients`, `clients_file` or `jwt`: see api-keys.md.',
    ),
  routing: routing.prefault({}).describe('How a replica is chosen.'),
  retry: retry
    .prefault({})
    .describe('Whether the next replica is tried if one answers that it cannot serve now: see routing.md.'),
  health: health.prefault({}).describe('Whether failing replicas are tried last. Off by default.'),
  rollout: rollout.prefault({}).describe('How replicas come back: see rollouts.md.'),
  discovery: discovery.prefault({}).describe('How often the gateway looks up what this file does not set.'),
  export: exporting.prefault({}).describe('How records reach a collector.'),
  metrics: metrics.prefault({}).describe('Metrics for GET /metrics and the collector.'),
  trace: trace.prefault({}).describe('Trace context of clients, and spans.'),
  prefix_hash: prefixHash.prefault({}).describe('Salted hashes of the beginning of the request text.'),
  timeouts: timeouts.prefault({}).describe('How long the gateway waits.'),
  limits: limits.prefault({}).describe('Limits on what the gateway holds.'),
  shutdown: shutdown.prefault({}).describe('The steps after SIGTERM or SIGINT.'),
  log: log.prefault({}).describe('JSON lines on standard output.'),
});

/** A valid configuration file with all keys: durations in ms, sizes in bytes, addresses split into host and port. */
export type ConfigFile = z.output<typeof configSchema>;
