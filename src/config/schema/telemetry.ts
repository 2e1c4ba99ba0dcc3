import { baseUrl, parseCollectorUrl, traceUrlTemplate } from './addresses.ts';
import { duration, flag, oneOf, size, wholeNumber } from './codecs.ts';
import { facts, RELOADED, section } from './keys.ts';

const exportRetry = section({
  initial: duration().prefault('500ms').describe('The first delay; it doubles with each failed call.'),
  max: duration().prefault('5s').describe('The longest delay.'),
});

const exportFile = section({
  max_size: size({ minBytes: 8 * 1024 ** 2 })
    .prefault('64MiB')
    .describe('records.jsonl is renamed, and a new file begun, before it exceeds this size.'),
  max_age: duration().prefault('1h').describe('records.jsonl is renamed this long after its first record.'),
  max_total: size({ minBytes: 16 * 1024 ** 2 })
    .prefault('1GiB')
    .describe('The total size of all files; the oldest are deleted when it is exceeded.'),
});

const ledger = section({
  interval: duration()
    .prefault('1m')
    .describe(
      'The longest time between two spans `gateway.ledger`. After 1,024 records there is one sooner.',
    ),
});

/** `export`: how records leave the gateway. */
export const exporting = section({
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

/** `metrics`: how sums of records leave it. */
export const metrics = section({
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

/** `trace`: the spans of a request, and the traces of clients. */
export const trace = section({
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
    .describe('The URL of a trace in a trace viewer, for links of the dashboard. `{trace_id}` is replaced.')
    .register(facts, RELOADED),
});

/** `prefix_hash`: what of a text is hashed. */
export const prefixHash = section({
  block_chars: wholeNumber(1, 1_000_000)
    .prefault(512)
    .describe('The number of characters (code points) per block.'),
  max_blocks: wholeNumber(1, 4096)
    .prefault(128)
    .describe('The maximum number of blocks that are hashed per request.'),
});
