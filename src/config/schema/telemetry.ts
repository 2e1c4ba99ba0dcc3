import { baseUrl, parseCollectorUrl, traceUrlTemplate } from './addresses.ts';
import { duration, flag, listOf, oneOf, period, size, wholeNumber } from './codecs.ts';
import { facts, RELOADED, section } from './keys.ts';

const exportRetry = section({
  initial: duration()
    .prefault('500ms')
    .describe('The longest first delay; it doubles with each failed call.'),
  max: duration().prefault('5s').describe('The longest delay, unless the collector names one.'),
});

const exportFile = section({
  max_size: size({ minBytes: 8 * 1024 ** 2 })
    .prefault('64MiB')
    .describe('records.jsonl is renamed before it exceeds this size.'),
  max_age: duration().prefault('1h').describe('records.jsonl is renamed this long after its first record.'),
  max_total: size({ minBytes: 16 * 1024 ** 2 })
    .prefault('1GiB')
    .describe('The size of all files; beyond it the oldest are deleted.'),
});

const ledger = section({
  interval: duration().prefault('1m').describe('The longest time between two ledger spans.'),
});

/** `export`: how records leave the gateway. */
export const exporting = section({
  to: oneOf(['otlp', 'file'])
    .prefault('otlp')
    .describe('`otlp`: to a collector. `file`: as OTLP JSON lines in state_dir.'),
  endpoint: baseUrl('put them into OTEL_EXPORTER_OTLP_HEADERS', parseCollectorUrl)
    .optional()
    .describe(
      'The collector; /v1/traces is appended. Default: OTEL_EXPORTER_OTLP_ENDPOINT, or `http://localhost:4318`.',
    ),
  protocol: oneOf(['http/protobuf', 'http/json'])
    .optional()
    .describe(
      'For records and metrics. Default: OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf, which is half the size.',
    ),
  file: exportFile.prefault({}).describe('With `to: file`.'),
  queue_size: wholeNumber(1, 10_000_000).prefault(16_384).describe('How many records may wait for export.'),
  queue_bytes: size({ minBytes: 1024 ** 2 })
    .prefault('256MiB')
    .describe('Their size together. Beyond either, new records are dropped.'),
  batch_size: wholeNumber(1, 10_000_000).prefault(512).describe('How many records one export call carries.'),
  interval: duration().prefault('1s').describe('How long a record waits for its batch to fill.'),
  retry: exportRetry.prefault({}).describe('The delay after a failed export call.'),
  ledger: ledger
    .optional()
    .describe(
      'Adds spans that say what became of the records, for `gateway verify`: see ledger.md. `{}` is enough. Default: none.',
    ),
});

/** `metrics`: how sums of records leave it. */
export const metrics = section({
  otlp: flag()
    .optional()
    .describe('Push metrics to the collector, too. Default: true if `export.to` is `otlp`.'),
  interval: duration()
    .optional()
    .describe('The time between two pushes. Default: OTEL_METRIC_EXPORT_INTERVAL, or 60s.'),
  max_names: wholeNumber(0, 1_000)
    .prefault(100)
    .describe(
      'How many tenants, and models that no replica lists, have metric series of their own; the others are `_OTHER`.',
    ),
});

/** `history`: what the gateway itself remembers. */
export const history = section({
  max_size: size({ minBytes: 32 * 1024 ** 2 })
    .prefault('256MiB')
    .describe('The size of the database. The oldest records go first; usage takes at most half.'),
  max_age: period({ minMs: 60_000, maxMs: 400 * 86_400_000 })
    .prefault('35d')
    .describe('How long records are kept. Usage by minute is kept for 7 days, by hour for 400.'),
  client_usage: flag()
    .prefault(false)
    .describe('Let clients with a key or token read their own usage at GET /v1/usage of `gateway.listen`.'),
});

/** `trace`: the spans of a request, and the traces of clients. */
export const trace = section({
  incoming: oneOf(['link', 'continue', 'ignore'])
    .prefault('link')
    .describe('What happens to the trace of a client: see record.md#traces-of-clients.'),
  spans: oneOf(['server', 'operation', 'attempts'])
    .prefault('server')
    .describe(
      'The spans of a request: one, also one for the operation, or also one per attempt: see record.md#spans.',
    ),
  dialects: listOf(
    oneOf(['langfuse', 'openinference', 'signoz', 'datadog']),
    'a list of different names: langfuse, openinference, signoz, datadog',
    { isSet: true },
  )
    .prefault([])
    .describe('The backends whose own attributes are added to spans: see backends.md.'),
  url_template: traceUrlTemplate()
    .nullable()
    .prefault(null)
    .describe('The URL of a trace in your trace viewer, with `{trace_id}` in it, for links on the dashboard.')
    .register(facts, RELOADED),
});

/** `prefix_hash`: what of a text is hashed. */
export const prefixHash = section({
  block_chars: wholeNumber(1, 1_000_000).prefault(512).describe('Characters (code points) per block.'),
  max_blocks: wholeNumber(1, 4096).prefault(128).describe('How many blocks of a request are hashed.'),
});
