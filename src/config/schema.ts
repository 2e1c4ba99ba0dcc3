import { z } from 'zod';
import {
  baseUrl,
  duration,
  flag,
  listenAddress,
  oneOf,
  redisUrl,
  serviceUrl,
  size,
  text,
  traceUrlTemplate,
  wholeNumber,
  wholeNumberOrAuto,
} from './codecs.ts';

const NAMED = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/; // a URL path segment that needs no escaping
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/; // a token: RFC 9110 5.6.2
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const URL_PATH = /^\/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,1023}$/; // RFC 3986 3.3, with a query if need be
const ONE_LINE = /^[^\p{Cc}]{1,256}$/u;

/** The engines whose wire habits the gateway knows. */
const engines = ['vllm', 'sglang', 'llamacpp', 'tgi', 'ollama', 'openai'] as const;

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
      'Names the replica in records and in the paths of the admin API.',
    ),
    url: baseUrl('put a key into api_key')
      .optional()
      .describe('Where the replica listens. A path is put before /v1/….'),
    dns: serviceUrl()
      .optional()
      .describe(
        'Instead of `url`: a name that stands for several replicas, one for each of its addresses (`name-10.0.0.11`), or, where it begins with `_`, for each target of its SRV records (`name-0`).',
      ),
    host: text('a text of one line', ONE_LINE)
      .optional()
      .describe("The machine the replica runs on. Without it, the url's host, or the target or address."),
    gpu_model: text('a text of one line', ONE_LINE)
      .nullable()
      .prefault(null)
      .describe('The accelerator model.'),
    gpu_count: wholeNumber(0, 1_000_000).nullable().prefault(null).describe('The number of accelerators.'),
    models: models
      .prefault('auto')
      .describe('What it serves. `auto`: read from its /v1/models; `["*"]`: it serves any name.'),
    engine: oneOf(['auto', ...engines])
      .prefault('auto')
      .describe('Whose wire habits apply. `auto`: told by its /v1/models; tgi must be named.'),
    api_key: text('a key of printable ASCII characters', HEADER_VALUE)
      .optional()
      .describe("Sent to the replica as bearer token, instead of the client's Authorization."),
    max_inflight: wholeNumber(1, 1_000_000)
      .nullable()
      .prefault(null)
      .describe('Requests in flight on it, at most; further ones wait (`limits.queue`). `null`: no limit.'),
  })
  .meta({ oneOf: [{ required: ['url'] }, { required: ['dns'] }] });

const replicasTitle = 'a list of at least one replica';
const replicas = z
  .array(replica, { error: replicasTitle })
  .min(1, { error: replicasTitle })
  .describe('The inference servers, in the order of their turns.');

const discovery = z.strictObject({
  models_interval: duration({ minMs: 100 })
    .prefault('30s')
    .describe(
      'How often replicas are asked for their /v1/models, where `models` or `engine` is `auto`; vLLM also for its /version.',
    ),
  dns_interval: duration({ minMs: 100 })
    .prefault('10s')
    .describe('How often names in `url` and `dns` are resolved again.'),
});

const routing = z.strictObject({
  policy: oneOf(['round_robin', 'least_inflight', 'prefix_affinity'])
    .prefault('round_robin')
    .describe(
      'Which replica a request goes to: the next in turn; the one with the fewest requests in flight; or the one that has served requests with the same beginning.',
    ),
});

const health = z.strictObject({
  passive: flag()
    .prefault(false)
    .describe('Whether a replica that refuses the connections of requests goes behind the others.'),
  active: flag().prefault(false).describe('The same for one whose probes fail.'),
  failures: wholeNumber(1, 1_000)
    .prefault(3)
    .describe('So many connections refused, or probes failed, one after the other: it is failing.'),
  successes: wholeNumber(1, 1_000)
    .prefault(2)
    .describe('So many probes answered, one after the other: it is ok again.'),
  cool_down: duration({ minMs: 10 })
    .prefault('10s')
    .describe('With `passive`: how often one request tries a failing replica.'),
  path: text('a path that begins with /', URL_PATH)
    .prefault('/health')
    .describe(
      'What probes ask for; any status from 200 to 299 is an answer. `/v1/models` is known to every engine.',
    ),
  interval: duration({ minMs: 10 }).prefault('5s').describe('From one probe of a replica to the next.'),
  timeout: duration({ minMs: 10 }).prefault('2s').describe('How long a probe may take.'),
});

const gateway = z.strictObject({
  name: text('a name of letters, digits and . _ ~ -, at most 128', NAMED)
    .optional()
    .describe('Names this gateway among those that share their state. Without it, the name of the machine.'),
  listen: listenAddress().prefault('0.0.0.0:8080').describe('Where clients connect.'),
  admin_listen: listenAddress().prefault('127.0.0.1:9090').describe('Where the admin API listens.'),
  workers: wholeNumberOrAuto(1, 256)
    .prefault(1)
    .describe('Threads that serve clients. `auto`: as many as there are cores.'),
});

const headers = z.strictObject({
  tenant: headerName().prefault('X-Tenant').describe('The request header that tells the tenant.'),
  feature: headerName().prefault('X-Feature').describe('The request header that tells the feature.'),
});

const retry = z.strictObject({
  initial: duration().prefault('500ms').describe('The first back-off; it doubles with each failed call.'),
  max: duration().prefault('5s').describe('The longest back-off.'),
});

const exportFile = z.strictObject({
  max_size: size({ minBytes: 8 * 1024 ** 2 })
    .prefault('64MiB')
    .describe('records.jsonl gets a name of its own before it grows beyond this.'),
  max_age: duration().prefault('1h').describe('The same, this long after its first record.'),
  max_total: size({ minBytes: 16 * 1024 ** 2 })
    .prefault('1GiB')
    .describe('All files together; beyond it the oldest are deleted.'),
});

const exporting = z.strictObject({
  to: oneOf(['otlp', 'file']).prefault('otlp').describe('A collector, or OTLP JSON lines in state_dir.'),
  endpoint: baseUrl('put them into OTEL_EXPORTER_OTLP_HEADERS')
    .optional()
    .describe(
      'Base URL of the collector; /v1/traces is appended. Without it, OTEL_EXPORTER_OTLP_ENDPOINT or http://localhost:4318.',
    ),
  file: exportFile.prefault({}).describe('With `to: file`: what becomes of a file that is large or old.'),
  queue_size: wholeNumber(1, 10_000_000)
    .prefault(16_384)
    .describe('Records that may wait for the collector.'),
  queue_bytes: size({ minBytes: 1024 ** 2 })
    .prefault('256MiB')
    .describe(
      'Bytes they may be together; past either bound new records are dropped. 2KiB is usual for one.',
    ),
  batch_size: wholeNumber(1, 10_000_000).prefault(512).describe('Records in one export call, at most.'),
  interval: duration().prefault('1s').describe('How long a record waits for its batch to fill.'),
  retry: retry.prefault({}).describe('Waiting between failed export calls.'),
});

const metrics = z.strictObject({
  otlp: flag()
    .optional()
    .describe('Whether metrics are pushed to the collector, too. Without it, as `export.to` is `otlp`.'),
  interval: duration()
    .optional()
    .describe('From one push to the next. Without it, OTEL_METRIC_EXPORT_INTERVAL or 60s.'),
  max_names: wholeNumber(0, 1_000)
    .prefault(100)
    .describe(
      'So many tenants, and models that no replica is known to serve, have series of their own; others are `_OTHER`.',
    ),
});

const trace = z.strictObject({
  incoming: oneOf(['link', 'ignore'])
    .prefault('link')
    .describe("What becomes of a client's traceparent. The gateway always starts the trace."),
  attempt_spans: flag()
    .prefault(false)
    .describe(
      'Whether each attempt at a replica is a span of its own: service graphs then draw the replicas.',
    ),
  url_template: traceUrlTemplate()
    .nullable()
    .prefault(null)
    .describe('Where a trace can be looked at: the dashboard links to it. `{trace_id}` is replaced.'),
});

const prefixHash = z.strictObject({
  block_chars: wholeNumber(1, 1_000_000).prefault(512).describe('Characters (code points) in one block.'),
  max_blocks: wholeNumber(1, 4096).prefault(128).describe('Blocks hashed of one request, at most.'),
});

const timeouts = z.strictObject({
  connect: duration().prefault('2s').describe('Connecting to a replica; past it the next one is tried.'),
  first_byte: duration().prefault('15m').describe("Waiting for a replica's response headers."),
  idle: duration()
    .prefault('5m')
    .describe("Silence in the middle of a replica's response, or a client that takes nothing of it."),
  queue: duration({ minMs: 0 })
    .prefault('30s')
    .describe('Waiting for a replica whose `max_inflight` is not reached.'),
  client_headers: duration()
    .prefault('15s')
    .describe("Waiting for the whole of a client's headers, from their first byte."),
  client_body: duration().prefault('60s').describe("Waiting for the whole of a client's request body."),
  keep_alive: duration().prefault('75s').describe("An idle client's connection is closed after this."),
  upstream_keep_alive: duration()
    .prefault('4s')
    .describe('An idle connection to a replica is closed after this; engines do so after 5s.'),
});

const limits = z.strictObject({
  body: size().prefault('32MiB').describe('The largest request body.'),
  buffered: size().prefault('512MiB').describe('Bytes of request bodies held in memory over all requests.'),
  headers: size({ minBytes: 1024 }).prefault('32KiB').describe('The largest request head.'),
  event: size({ minBytes: 1024 })
    .prefault('1MiB')
    .describe('The largest stream event that is looked into; a longer one is relayed as it is.'),
  queue: wholeNumber(0, 1_000_000)
    .prefault(1_000)
    .describe('Requests that may wait because all replicas of their model are at `max_inflight`.'),
  connections: wholeNumber(1, 10_000_000).prefault(10_000).describe('Client connections, at most.'),
});

const shutdown = z.strictObject({
  delay: duration({ minMs: 0 })
    .prefault('0s')
    .describe('How long /healthz answers 503 before the listener closes.'),
  grace: duration({ minMs: 0 }).prefault('20s').describe('How long requests in flight may take to finish.'),
  flush: duration({ minMs: 0 }).prefault('5s').describe('How long queued records may take to be exported.'),
});

const log = z.strictObject({
  level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .prefault('info')
    .describe('The least severe lines that are written.'),
  requests: flag().prefault(false).describe('Whether each request is one log line, without any text of it.'),
});

const state = z.strictObject({
  redis: redisUrl()
    .optional()
    .describe('A Redis or Valkey server through which gateways share drains and what is in flight.'),
  prefix: text('a name of letters, digits and . _ ~ -, at most 128', NAMED)
    .prefault('spangate')
    .describe('Its keys begin with this in braces. Gateways with another prefix are another fleet.'),
});

/** The configuration file: the one source of types, JSON Schema, reference and checks. */
export const configSchema = z.strictObject({
  gateway: gateway.prefault({}).describe('The listeners.'),
  headers: headers.prefault({}).describe('Request headers that are recorded.'),
  state_dir: z
    .string({ error: 'a path' })
    .min(1, { error: 'a path' })
    .meta({ title: 'a path, relative to the directory of this file' })
    .prefault('./state')
    .describe('Where the salt, drains and exported files are kept.'),
  state: state.prefault({}).describe('What several gateways share: see fleet.md.'),
  replicas,
  routing: routing.prefault({}).describe('How a replica is chosen.'),
  health: health.prefault({}).describe('Whether replicas that fail are tried last. Off unless it is set.'),
  discovery: discovery.prefault({}).describe('How often is looked up what this file leaves open.'),
  export: exporting.prefault({}).describe('How records reach a collector.'),
  metrics: metrics.prefault({}).describe('What is counted, for GET /metrics and the collector.'),
  trace: trace.prefault({}).describe('Trace context of clients, and spans.'),
  prefix_hash: prefixHash.prefault({}).describe('Salted hashes of the beginning of the request text.'),
  timeouts: timeouts.prefault({}).describe('How long the gateway waits.'),
  limits: limits.prefault({}).describe('What the gateway holds, at most.'),
  shutdown: shutdown.prefault({}).describe('The steps after SIGTERM or SIGINT.'),
  log: log.prefault({}).describe('JSON lines on standard output.'),
});

/** A valid configuration file: its own keys, all present; durations in ms, sizes in bytes, addresses split. */
export type ConfigFile = z.output<typeof configSchema>;
