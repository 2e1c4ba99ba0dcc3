import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { gzipSync } from 'node:zlib';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { type OtlpProtocol, readOtlpOptions } from '#otel/collector';
import { createOtlpExporter } from '#otel/export';
import { encodeResourceSpans, joinBatch, joinJsonBatch, SpanEncoder, toSpanJson } from '#otel/otlp';
import type { RequestRecord } from '#otel/record/registry';
import { createResource } from '#otel/resource';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { readCpu, toSpentUs } from '#testkit/programs/process-tree.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { createRequestSpans } from '../../otel/span/request-span.ts';
import { RandomIds } from '../../otel/span/trace-ids.ts';
import { createTracer } from '../../otel/span/tracer.ts';

const USAGE = `npm run lab -- measure/protocols [options]
  Measures what a record costs as OTLP protobuf and as OTLP JSON: its bytes, the µs of CPU to encode it, to convert it to
  JSON and to export it, and the CPU of a real collector per 100,000 records. The collector is the one that
  scripts/otelcol/build.sh has built; without one, its figures are left out.
  --rounds N  rounds of each measurement (default 5); the result is the lowest`;

const { rounds: roundsText = '5' } = startProgram(USAGE, { rounds: { type: 'string' } });
const ROUNDS = Number(roundsText);
const RECORDS = 2048;
const BATCH = 512;
const SENT_RECORDS = 50 * BATCH;

/** Kinds of traffic: how many models, replicas and tenants share the requests, and whether the answers are streamed. */
const TRAFFIC = {
  'one model, JSON answers': { models: 1, replicas: 1, tenants: 1, isStream: false },
  '8 models, 16 replicas, 50 tenants, streams': { models: 8, replicas: 16, tenants: 50, isStream: true },
} as const;

type Traffic = (typeof TRAFFIC)[keyof typeof TRAFFIC];

function toRecord(index: number, traceId: string, traffic: Traffic): RequestRecord {
  const { models, replicas, tenants, isStream } = traffic;
  const hashCount = 2 + (index % 6);
  const stream = {
    ttft_ms: 20 + Math.random() * 70,
    gap_p50_ms: Math.random() * 30,
    gap_p95_ms: Math.random() * 60,
  };
  return {
    request_id: `0e8d5b3c-38d7-4c1b-8b1d-${traceId.slice(20)}`,
    trace_id: traceId,
    ts: `2026-11-21T08:00:00.${String(index % 1000).padStart(3, '0')}Z`,
    endpoint: '/v1/chat/completions',
    replica: `vllm-${index % replicas}`,
    model: `llama-3.3-${(index * 7) % models}b-instruct`,
    tenant: `tenant-${(index * 11) % tenants}`,
    prompt_tokens: 100 + ((index * 37) % 4000),
    completion_tokens: 10 + ((index * 13) % 800),
    cached_tokens: (index * 16) % 512,
    e2e_ms: Math.random() * 1000,
    status: 200,
    stream: isStream,
    max_tokens: 256,
    prompt_chars: 400 + ((index * 41) % 9000),
    prefix_hashes: Array.from({ length: hashCount }, (_, at) => traceId.slice(at, at + 16)),
    finish_reasons: ['stop'],
    attempts: 1,
    route_reason: 'turn',
    ...(isStream ? stream : {}),
  };
}

/** The spans of records, as our processor gets them. */
function endSpans(traffic: Traffic): readonly ReadableSpan[] {
  const ended: ReadableSpan[] = [];
  const processor = {
    onStart: () => undefined,
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const startSpan = createRequestSpans(createTracer(processor, new RandomIds()), {
    depth: 'server',
    genAi: 'pinned',
    number: () => undefined,
  });
  for (let index = 0; index < RECORDS; index++) {
    const span = startSpan({ method: 'POST', route: '/v1/chat/completions' });
    const http = { scheme: 'http', serverAddress: 'gateway.example', serverPort: 8080 } as const;
    span.end(toRecord(index, span.traceId, traffic), http);
  }
  return ended;
}

/** The lowest µs of this process's CPU per call, over the rounds, after a warm-up. */
function measureUs<Item>(items: readonly Item[], piece: (item: Item) => unknown): number {
  const passes = 10;
  let leastUs = Number.POSITIVE_INFINITY;
  for (let round = -2; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let pass = 0; pass < passes; pass++) for (const item of items) piece(item);
    const { user, system } = process.cpuUsage(before);
    if (round >= 0) leastUs = Math.min(leastUs, (user + system) / (passes * items.length));
  }
  return leastUs;
}

const print = (value: string | number, what: string) => console.log(`${String(value).padStart(10)}  ${what}`);

const resourceSpans = encodeResourceSpans(createResource({ name: 'measure' }));
let sent: readonly Uint8Array[] = [];
for (const [name, traffic] of Object.entries(TRAFFIC)) {
  const spans = endSpans(traffic);
  const encoder = new SpanEncoder();
  const encodedSpans = spans.map((span) => Buffer.from(encoder.encode(span)));
  const json = encodedSpans.map((encodedSpan) => Buffer.from(toSpanJson(encodedSpan) ?? ''));
  const [protobufBatch, jsonBatch] = [
    joinBatch(resourceSpans, encodedSpans.slice(0, BATCH)),
    joinJsonBatch(resourceSpans, json.slice(0, BATCH)),
  ];
  console.log(`${name}:`);
  print((protobufBatch.length / BATCH).toFixed(0), 'bytes per record, protobuf');
  print((jsonBatch.length / BATCH).toFixed(0), 'bytes per record, JSON');
  print(
    (gzipSync(protobufBatch, { level: 1 }).length / BATCH).toFixed(0),
    'bytes per record, protobuf, gzip',
  );
  print((gzipSync(jsonBatch, { level: 1 }).length / BATCH).toFixed(0), 'bytes per record, JSON, gzip');
  print(measureUs(spans, (span) => encoder.encode(span)).toFixed(2), 'µs to encode a record');
  print(measureUs(encodedSpans, toSpanJson).toFixed(2), 'µs to convert it to JSON');
  sent = encodedSpans;
}

const collector = execFileSync(join(ROOT, 'scripts/otelcol/build.sh'), ['--path'], {
  encoding: 'utf8',
}).trim();
if (existsSync(collector)) await measureCollector(collector);
else console.log('no collector has been built: scripts/otelcol/build.sh');

/** Sends the same records with both protocols to a collector that only decodes them. */
async function measureCollector(binary: string): Promise<void> {
  const port = await findFreePort();
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: { debug: { verbosity: 'basic' } },
    service: {
      telemetry: { metrics: { level: 'none' }, logs: { level: 'info' } },
      pipelines: { traces: { receivers: ['otlp'], exporters: ['debug'] } },
    },
  };
  const child = spawn(binary, ['--config', `yaml:${JSON.stringify(config)}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  process.once('exit', () => child.kill());
  const lines = createInterface({ input: child.stderr });
  await new Promise<void>((resolve) => {
    lines.on('line', (line) => line.includes('Everything is ready') && resolve());
  });
  const pid = child.pid ?? 0;
  console.log('the records of the last kind, sent to a collector:');
  const least = new Map<OtlpProtocol, { collectorUs: number; ownUs: number }>();
  // In turns, so that a disturbance of the machine hits both; the first turn is a warm-up.
  for (let round = -1; round < ROUNDS; round++) {
    for (const protocol of ['http/protobuf', 'http/json'] as const) {
      const before = readCpu(pid);
      const ownUs = await send(`http://127.0.0.1:${port}`, protocol);
      const collectorUs = toSpentUs(before, readCpu(pid));
      const lowest = least.get(protocol) ?? {
        collectorUs: Number.POSITIVE_INFINITY,
        ownUs: Number.POSITIVE_INFINITY,
      };
      if (round < 0) continue;
      least.set(protocol, {
        collectorUs: Math.min(collectorUs, lowest.collectorUs),
        ownUs: Math.min(ownUs, lowest.ownUs),
      });
    }
  }
  for (const [protocol, { collectorUs, ownUs }] of least) {
    const seconds = (collectorUs / SENT_RECORDS) * 0.1;
    print(seconds.toFixed(2), `s of the collector's CPU per 100,000 records, ${protocol}`);
    print((ownUs / SENT_RECORDS).toFixed(2), `µs to export a record, ${protocol}`);
  }
  child.kill();
  await once(child, 'exit');
}

/** Sends the records in batches, one after another. Returns the µs of this process's CPU. */
async function send(endpoint: string, protocol: OtlpProtocol): Promise<number> {
  const log = { info() {}, warn() {}, error() {} };
  const exporter = createOtlpExporter(await readOtlpOptions({ endpoint, protocol }, log), resourceSpans);
  const never = new AbortController().signal;
  const before = process.cpuUsage();
  for (let count = 0; count < SENT_RECORDS; count += BATCH) {
    const start = count % RECORDS;
    const outcome = await exporter.exportBatch(sent.slice(start, start + BATCH), never);
    if (outcome.kind !== 'taken' || outcome.rejectedCount > 0)
      throw new Error('the collector refused a batch');
  }
  const { user, system } = process.cpuUsage(before);
  exporter.close();
  return user + system;
}
