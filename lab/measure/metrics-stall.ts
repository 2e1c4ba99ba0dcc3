import { resourceFromAttributes } from '@opentelemetry/resources';
import { allocateEventLoopDelays, type Metrics, startMetrics } from '#otel/metrics';
import { ExportCounters } from '#otel/queue';
import type { RequestRecord } from '#otel/record/registry';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startProgram } from '#testkit/programs/program.ts';

const USAGE = `npm run lab -- measure/metrics-stall
  Measures how long the event loop is blocked while many metrics are read. Prints the longest turn of the loop during
  GET /metrics and during a push, five times each.`;

const ROUNDS = 5;
const UNUSED = { now: 0, limit: 1 };
const REPLICAS = Array.from({ length: 40 }, (_, index) => `vllm-${index}`);

/** Records that create as many series as a large fleet. */
function* records(): Generator<RequestRecord> {
  for (let index = 0; index < 2_000; index += 1) {
    yield {
      request_id: '0b1c2d3e-4f50-4162-8394-a5b6c7d8e9f0',
      trace_id: '0af7651916cd43dd8448eb211c80319c',
      ts: '2026-11-21T08:00:00.123Z',
      endpoint: '/v1/chat/completions',
      model: `model-${index % 50}`,
      replica: `vllm-${Math.floor(index / 50)}`,
      tenant: `tenant-${index % 100}`,
      status: 200 + (index % 90),
      stream: true,
      attempts: 1,
      e2e_ms: 900,
      ttft_ms: 70,
      gap_p50_ms: 20,
      gap_p95_ms: 40,
      prompt_tokens: 100,
      cached_tokens: 10,
      completion_tokens: 90,
      reasoning_tokens: 3,
    };
  }
}

/** The longest turn of the event loop during the work: in wall time, and in CPU time of this thread. */
async function longestTurn(work: () => Promise<void>): Promise<string> {
  const longest = { wallMs: 0, cpuMs: 0 };
  let isOver = false;
  let last = now();
  const turn = () => {
    const current = now();
    longest.wallMs = Math.max(longest.wallMs, current.wallMs - last.wallMs);
    longest.cpuMs = Math.max(longest.cpuMs, current.cpuMs - last.cpuMs);
    last = current;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const startMs = performance.now();
  await work();
  const totalMs = performance.now() - startMs;
  isOver = true;
  return `${longest.wallMs.toFixed(1)} ms (${longest.cpuMs.toFixed(1)} ms of CPU) of ${totalMs.toFixed(0)} ms`;
}

function now() {
  const { user, system } = process.threadCpuUsage();
  return { wallMs: performance.now(), cpuMs: (user + system) / 1000 };
}

async function start(endpoint?: string): Promise<Metrics> {
  const metrics = await startMetrics(
    {
      maxNames: 100,
      urlScheme: 'http',
      push: endpoint === undefined ? undefined : { endpoint, intervalMs: 3_600_000 },
    },
    {
      isKnownModel: () => true,
      replicaUrl: (name) => `http://${name}:8000`,
      replicas: () =>
        REPLICAS.map((name) => ({
          name,
          inflight: 0,
          background: 0,
          maxInflight: null,
          streams: { running: 0, silent: 0, oldestMs: 0 },
          drained: false,
          failing: false,
          judges: [],
          decisions: [],
          up: true,
          gpuTime: null,
        })),
      models: () => [],
      sources: () => [],
      conditions: () => [],
      comparisons: () => [],
      shadows: () => [],
      gateway: () => ({
        waiting: UNUSED,
        connections: UNUSED,
        bufferedBytes: UNUSED,
        workerEnds: { ended: 0, hung: 0 },
        wrongAdminTokens: 0,
      }),
      workers: () => [],
      eventLoopDelays: allocateEventLoopDelays(0),
      version: '0.0.0',
      exportState: () => ({
        stats: { ...new ExportCounters().values, queued: 0 },
        queueCapacity: 1,
        inflight: 0,
      }),
      collector: undefined,
      resource: resourceFromAttributes({ 'service.name': 'spangate' }),
      log: { info() {}, warn() {}, error() {} },
    },
  );
  for (const record of records()) metrics.record(record);
  return metrics;
}

startProgram(USAGE, {});
for (let round = 0; round < ROUNDS; round += 1) {
  const metrics = await start();
  let chars = 0;
  const longest = await longestTurn(async () => {
    for await (const piece of metrics.toExposition('openmetrics')) chars += piece.length;
  });
  console.log(`GET /metrics: longest turn ${longest}, ${(chars / 1e6).toFixed(1)} MB`);
}

await using collector = await startFakeCollector();
for (let round = 0; round < ROUNDS; round += 1) {
  const metrics = await start(collector.url);
  console.log(`push: longest turn ${await longestTurn(() => metrics.shutdown(60_000))}`);
}
