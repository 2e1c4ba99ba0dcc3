import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { context, trace } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RECORD_FIELDS } from '#otel/record/registry';
import { type Recorder, type RecorderSettings, startRecorder } from '#otel/span';
import { type FakeCollector, readSpans, startFakeCollector } from '#testkit/fake-collector.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { FULL_RECORD, LEAST_RECORD } from '#testkit/records/records.ts';
import { startTelemetry, type Telemetry, type TelemetrySettings } from '../../otel/start-telemetry.ts';

const HTTP = { scheme: 'http', serverAddress: '127.0.0.1', serverPort: 8080 } as const;
const CLIENT_TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CLIENT_SPAN = '00f067aa0ba902b7';

let collector: FakeCollector;
let directory: string;
/** Telemetry, and the recorder of a thread that serves requests. */
type Started = Telemetry & Omit<Recorder, 'shutdown'>;

const running: Telemetry[] = [];
beforeEach(async () => {
  collector = await startFakeCollector();
  directory = await mkdtemp(join(tmpdir(), 'spangate-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(running.splice(0).map((telemetry) => telemetry.shutdown(0)));
  await collector.close();
  await rm(directory, { recursive: true });
});

/** Telemetry that sends each record at once, unless the test sets something else. */
async function start(
  settings: Partial<TelemetrySettings & RecorderSettings> = {},
  log = createQuietLog(),
): Promise<Started> {
  const telemetry = await startTelemetry(
    {
      exporter: { to: 'otlp', endpoint: collector.url },
      queue: { capacity: 100, capacityBytes: 1_000_000 },
      spoolDirectory: join(directory, 'spool'),
      batchSize: 1,
      intervalMs: 1000,
      retry: { initialMs: 1, maxMs: 5 },
      ...settings,
    },
    { log },
  );
  running.push(telemetry);
  const recorder = startRecorder({ incoming: 'link', ...settings }, { consumer: telemetry.consumer, log });
  return { ...recorder, ...telemetry };
}

function startSpan(telemetry: Started, traceparent?: string) {
  const incoming =
    traceparent === undefined ? undefined : { traceparent, tracestate: undefined, isTrusted: false };
  return telemetry.startRequestSpan({ method: 'POST', route: '/v1/chat/completions', incoming });
}

describe('a request span', () => {
  test('is a sampled root of a new trace, whose context is the traceparent', async () => {
    const telemetry = await start();
    const span = startSpan(telemetry);
    span.end({ ...LEAST_RECORD, trace_id: span.traceId }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    const [received] = collector.spans;
    expect(received).toMatchObject({
      name: 'POST /v1/chat/completions',
      kind: 2,
      links: [],
      parentSpanId: undefined,
    });
    expect(span.traceparent).toBe(`00-${received?.traceId}-${received?.spanId}-01`);
    expect(span.traceId).toBe(received?.traceId);
  });

  test('carries every field of the record, doubles as doubles and ints as ints', async () => {
    const telemetry = await start();
    const record = { ...FULL_RECORD };
    startSpan(telemetry).end(record, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    const { timings, route_ruled_out, ...fields } = record;
    for (const [field, value] of Object.entries(fields)) {
      const { name } = RECORD_FIELDS[field as keyof typeof RECORD_FIELDS];
      expect(collector.spans[0]?.attributes[name]).toEqual(value);
    }
    expect(collector.spans[0]?.attributes['gateway.route.ruled_out.drained']).toBe(route_ruled_out.drained);
    expect(collector.spans[0]?.attributes['gateway.timings.prompt_ms']).toBe(timings.prompt_ms);
    expect(collector.spans[0]?.types).toMatchObject({
      'gateway.ttft_ms': 'doubleValue',
      'gateway.e2e_ms': 'doubleValue',
      'gateway.timings.prompt_ms': 'doubleValue',
      'gateway.prompt_tokens': 'intValue',
      'gen_ai.usage.input_tokens': 'intValue',
      'http.response.status_code': 'intValue',
    });
  });

  test('has an event for each failed attempt', async () => {
    const span = startSpan(await start());
    const failed_attempts = [
      { replica: 'a', failure: 'not_connected', status: null, duration_ms: 2, after_ms: 2 },
      { replica: 'b', failure: 'loading', status: 503, duration_ms: 0.5, after_ms: 3 },
    ];
    span.end({ ...LEAST_RECORD, failed_attempts }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    expect(collector.spans[0]?.events).toEqual([
      {
        name: 'gateway.attempt_failed',
        attributes: {
          'gateway.attempt': 1,
          'gateway.replica': 'a',
          'error.type': 'not_connected',
          'gateway.duration_ms': 2,
        },
      },
      {
        name: 'gateway.attempt_failed',
        attributes: {
          'gateway.attempt': 2,
          'gateway.replica': 'b',
          'error.type': 'loading',
          'http.response.status_code': 503,
          'gateway.duration_ms': 0.5,
        },
      },
    ]);
  });

  test.each([
    { ending: 'a 200', record: { status: 200 }, code: 0 },
    { ending: 'a 404', record: { status: 404, error_type: 'not_found' }, code: 0 },
    { ending: 'a 503', record: { status: 503 }, code: 2 },
    { ending: 'a broken stream', record: { status: 200, truncated: true as const }, code: 2 },
  ])('has status $code after $ending', async ({ record, code }) => {
    startSpan(await start()).end({ ...LEAST_RECORD, ...record }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    expect(collector.spans[0]?.status.code).toBe(code);
  });

  test('ends once, however often it is ended', async () => {
    const telemetry = await start();
    const span = startSpan(telemetry);
    span.end({ ...LEAST_RECORD }, HTTP);
    span.end({ ...LEAST_RECORD }, HTTP);
    expect(telemetry.stats().recorded).toBe(1);
  });
});

describe('a caller’s traceparent', () => {
  test.each(['00', '01', '03', 'ff'])('with flags %s becomes a link', async (flags) => {
    const span = startSpan(await start(), `00-${CLIENT_TRACE}-${CLIENT_SPAN}-${flags}`);
    span.end({ ...LEAST_RECORD }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    expect(collector.spans[0]?.links).toMatchObject([{ traceId: CLIENT_TRACE, spanId: CLIENT_SPAN }]);
    expect(span.traceId).not.toBe(CLIENT_TRACE);
    expect(span.traceparent).toMatch(/-01$/);
  });

  test.each([
    '',
    'garbage',
    `00-${'0'.repeat(32)}-${CLIENT_SPAN}-01`,
    `00-${CLIENT_TRACE}-${'0'.repeat(16)}-01`,
    `ff-${CLIENT_TRACE}-${CLIENT_SPAN}-01`,
    `00-${CLIENT_TRACE}-${CLIENT_SPAN}-01-extra`,
    `00-${CLIENT_TRACE.toUpperCase()}-${CLIENT_SPAN}-01`,
    `00-${CLIENT_TRACE}-${CLIENT_SPAN}-01, 00-${CLIENT_TRACE}-${CLIENT_SPAN}-01`,
    '-'.repeat(100_000),
  ])('that is malformed (case %#) is no link and no error', async (traceparent) => {
    startSpan(await start(), traceparent).end({ ...LEAST_RECORD }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    expect(collector.spans[0]?.links).toEqual([]);
  });

  test('is no link if it is to be ignored', async () => {
    const telemetry = await start({ incoming: 'ignore' });
    startSpan(telemetry, `00-${CLIENT_TRACE}-${CLIENT_SPAN}-01`).end({ ...LEAST_RECORD }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    expect(collector.spans[0]?.links).toEqual([]);
  });
});

test('a request without a record gets a traceparent that is not sampled', async () => {
  const telemetry = await start();
  const traceparents = [1, 2].map(() => telemetry.createUnrecordedContext(undefined).traceparent);
  expect(new Set(traceparents).size).toBe(2);
  for (const traceparent of traceparents) expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  expect(telemetry.stats().recorded).toBe(0);
});

describe('no variable can lose a record, a field or the traceparent', () => {
  test.each([
    { OTEL_SDK_DISABLED: 'true' },
    { OTEL_TRACES_SAMPLER: 'always_off' },
    { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
    { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'otlp', OTEL_LOGS_EXPORTER: 'otlp' },
    { OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '1', OTEL_ATTRIBUTE_COUNT_LIMIT: '1' },
    { OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '1', OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '1' },
    {
      OTEL_SPAN_EVENT_COUNT_LIMIT: '0',
      OTEL_SPAN_LINK_COUNT_LIMIT: '0',
      OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT: '0',
      OTEL_LINK_ATTRIBUTE_COUNT_LIMIT: '0',
    },
    { OTEL_PROPAGATORS: 'none' },
    { OTEL_BSP_MAX_QUEUE_SIZE: '1', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1', OTEL_BSP_EXPORT_TIMEOUT: '1' },
    { OTEL_NODE_RESOURCE_DETECTORS: 'none', OTEL_NODE_EXPERIMENTAL_SDK_METRICS: 'true' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'nonsense' },
    { OTEL_RESOURCE_ATTRIBUTES: '=,=,%', OTEL_SERVICE_NAME: '' },
  ])('$#: %o', async (variables: Record<string, string | undefined>) => {
    startSpan(await start()).end({ ...FULL_RECORD }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    const span = startSpan(await start(), `00-${CLIENT_TRACE}-${CLIENT_SPAN}-00`);
    const attempt = { replica: 'vllm-a', failure: 'refused', status: null, duration_ms: 1, after_ms: 1 };
    span.end({ ...FULL_RECORD, failed_attempts: [attempt] }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 2);
    const [without, received] = collector.spans;
    expect(received?.attributes).toEqual({
      ...without?.attributes,
      'gateway.instance': received?.attributes['gateway.instance'],
    });
    expect(received?.events[0]?.attributes).toMatchObject({ 'gateway.replica': 'vllm-a' });
    expect(received?.links).toHaveLength(1);
    expect(span.traceparent).toBe(`00-${received?.traceId}-${received?.spanId}-01`);
  });
});

describe('the resource', () => {
  async function receive(variables: Record<string, string>, settings: Partial<TelemetrySettings> = {}) {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    startSpan(await start(settings)).end({ ...LEAST_RECORD }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    return collector.spans[0]?.resource;
  }

  test('is that of a service called spangate, without facts about the machine', async () => {
    const resource = await receive({});
    expect(resource?.['service.name']).toBe('spangate');
    expect(Object.keys(resource ?? {}).filter((name) => /^(process|host|os)\./.test(name))).toEqual([]);
  });

  test('has OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME; the latter takes precedence', async () => {
    expect(
      await receive({
        OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,deployment.environment.name=pr%2Dod',
        OTEL_SERVICE_NAME: 'edge',
      }),
    ).toMatchObject({ 'service.name': 'edge', 'deployment.environment.name': 'pr-od' });
  });

  test('has the name that is set in code rather than that of a variable', async () => {
    expect(await receive({ OTEL_SERVICE_NAME: 'edge' }, { serviceName: 'mine' })).toMatchObject({
      'service.name': 'mine',
    });
  });
});

test('several gateways of one process keep their records apart, and leave the API’s globals alone', async () => {
  await using other = await startFakeCollector();
  const [first, second] = [await start(), await start({ exporter: { to: 'otlp', endpoint: other.url } })];
  startSpan(first).end({ ...LEAST_RECORD, replica: 'first' }, HTTP);
  startSpan(second).end({ ...LEAST_RECORD, replica: 'second' }, HTTP);
  trace.getTracer('spangate').startSpan('somebody else’s').end();
  await Promise.all([first.shutdown(5000), second.shutdown(5000)]);
  expect(collector.spans.map(({ attributes }) => attributes['gateway.replica'])).toEqual(['first']);
  expect(other.spans.map(({ attributes }) => attributes['gateway.replica'])).toEqual(['second']);
  expect(context.setGlobalContextManager(contextManagerOfTheTest)).toBe(true);
  context.disable();
});

const contextManagerOfTheTest = {
  active: () => context.active(),
  with: () => {
    throw new Error('not used');
  },
  bind: <Target>(_context: unknown, target: Target) => target,
  enable: () => contextManagerOfTheTest,
  disable: () => contextManagerOfTheTest,
};

describe('export', () => {
  test('repeats a batch with the same span ids until the collector takes it', async () => {
    const telemetry = await start();
    collector.answerNext({ status: 503 }, { cut: true }, { status: 429, headers: { 'retry-after': '0' } });
    startSpan(telemetry).end({ ...LEAST_RECORD }, HTTP);
    await collector.waitFor(({ spans }) => spans.length === 1);
    await telemetry.shutdown(5000);
    expect(new Set(collector.calls.flatMap(({ spans }) => spans.map(({ spanId }) => spanId))).size).toBe(1);
    expect(telemetry.stats()).toMatchObject({ recorded: 1, exported: 1, failedCalls: 3, queued: 0 });
  });

  test('keeps records in the queue while the collector holds them, and drops new ones', async () => {
    const held = Promise.withResolvers<void>();
    const telemetry = await start({ queue: { capacity: 4, capacityBytes: 1_000_000 }, batchSize: 2 });
    collector.answerNext({ after: held.promise });
    for (let index = 0; index < 6; index += 1) startSpan(telemetry).end({ ...LEAST_RECORD }, HTTP);
    await collector.waitFor(({ calls }) => calls.length === 1);
    expect(telemetry.stats()).toMatchObject({ recorded: 6, queued: 4, dropped: 2, exported: 0 });
    held.resolve();
    await telemetry.shutdown(5000);
    expect(telemetry.stats()).toMatchObject({ recorded: 6, queued: 0, dropped: 2, exported: 4 });
  });

  test('sends what is queued at shutdown, and writes the rest to the spool', async () => {
    const telemetry = await start({ batchSize: 512, intervalMs: 60_000 });
    for (let index = 0; index < 3; index += 1) startSpan(telemetry).end({ ...LEAST_RECORD }, HTTP);
    expect(await telemetry.shutdown(5000)).toEqual({ undelivered: 0 });
    expect(collector.calls.map(({ spans }) => spans.length)).toEqual([3]);

    collector.answerAlways({ status: 503 });
    const unlucky = await start({ batchSize: 512, intervalMs: 60_000 });
    startSpan(unlucky).end({ ...LEAST_RECORD }, HTTP);
    const shutdown = unlucky.shutdown(20);
    expect(unlucky.shutdown(60_000)).toBe(shutdown);
    expect(await shutdown).toEqual({ undelivered: 0 });
    expect(unlucky.stats()).toMatchObject({ queued: 0, exported: 0, spooled: 1 });
  });

  test('logs what could neither be sent nor written to the spool', async () => {
    await writeFile(join(directory, 'spool'), 'in the way');
    collector.answerAlways({ status: 503 });
    const log = createQuietLog();
    const telemetry = await start({ batchSize: 512, intervalMs: 60_000 }, log);
    startSpan(telemetry).end({ ...LEAST_RECORD }, HTTP);
    expect(await telemetry.shutdown(0)).toEqual({ undelivered: 1 });
    expect(telemetry.stats()).toMatchObject({ queued: 1, spooled: 0 });
    expect(log.lines.filter(({ level }) => level === 'error')).toMatchObject([
      { fields: { reason: 'ENOTDIR' } },
      { fields: { undelivered: 1 } },
    ]);
  });

  test('to a file writes the same spans as lines', async () => {
    const telemetry = await start({
      exporter: { to: 'file', files: { directory, maxBytes: 1e6, maxAgeMs: 60_000, maxTotalBytes: 1e7 } },
    });
    startSpan(telemetry).end({ ...FULL_RECORD }, HTTP);
    await telemetry.shutdown(5000);
    const text = await readFile(join(directory, 'records.jsonl'), 'utf8');
    expect(text.endsWith('\n')).toBe(true);
    expect(readSpans(text)[0]?.attributes['gateway.request_id']).toBe(FULL_RECORD.request_id);
  });
});
