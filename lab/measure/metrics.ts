import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { RequestRecord } from '#otel/record/registry';
import { startProgram } from '#testkit/programs/program.ts';
import { METRICS } from '../../otel/metrics/metric-table.ts';
import { RecordMetrics } from '../../otel/metrics/record-metrics.ts';

const USAGE = `npm run lab -- measure/metrics
  Measures the time to count one record, and the time of the SDK's own instruments for the same sums. Prints µs per
  record: the best and the worst of ten rounds after a warm-up.`;

const ROUNDS = 10;
const RECORDS_PER_ROUND = 100_000;

/** Records of streams by 8 models, 16 replicas and 50 tenants. */
const RECORDS: readonly RequestRecord[] = Array.from({ length: 2000 }, (_, index) => ({
  request_id: '0b1c2d3e-4f50-4162-8394-a5b6c7d8e9f0',
  trace_id: '0af7651916cd43dd8448eb211c80319c',
  ts: '2026-11-21T08:00:00.123Z',
  endpoint: '/v1/chat/completions',
  model: `model-${index % 8}`,
  replica: `vllm-${index % 16}`,
  tenant: `tenant-${index % 50}`,
  status: 200,
  stream: true,
  attempts: 1,
  e2e_ms: 200 + (index % 900),
  ttft_ms: 20 + (index % 70),
  gap_p50_ms: index % 30,
  gap_p95_ms: index % 60,
  prompt_tokens: 100 + index,
  cached_tokens: index % 100,
  completion_tokens: 10 + (index % 300),
}));

class IdleReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** The same sums with the SDK's instruments. Attributes are created once, which is the SDK's lower bound. */
function createSdkRecorder(): (record: RequestRecord) => void {
  const meter = new MeterProvider({ readers: [new IdleReader()] }).getMeter('measure');
  const definitions = Object.values(METRICS);
  const histograms = definitions.filter(({ instrument }) => instrument === 'histogram');
  const instruments = histograms.map(({ name }) => meter.createHistogram(name));
  const counters = ['requests', 'attempts', 'prompt', 'cached', 'completion'].map((name) =>
    meter.createCounter(name),
  );
  const attributes = new Map(RECORDS.map((record) => [record, toAttributes(record)]));
  return (record) => {
    for (const histogram of instruments) histogram.record(record.e2e_ms / 1000, attributes.get(record));
    for (const counter of counters) counter.add(1, attributes.get(record));
  };
}

function toAttributes({ model = '', replica = '' }: RequestRecord) {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': model,
    'gateway.replica': replica,
  };
}

function measure(name: string, record: (record: RequestRecord) => void): void {
  const micros: number[] = [];
  for (let round = -2; round < ROUNDS; round += 1) {
    const startMs = performance.now();
    for (let index = 0; index < RECORDS_PER_ROUND; index += 1) {
      const next = RECORDS[index % RECORDS.length];
      if (next !== undefined) record(next);
    }
    const perRecord = ((performance.now() - startMs) * 1000) / RECORDS_PER_ROUND;
    if (round >= 0) micros.push(perRecord);
  }
  const [best, worst] = [Math.min(...micros), Math.max(...micros)];
  console.log(`${name.padEnd(24)}${best.toFixed(2)} to ${worst.toFixed(2)} µs per record`);
}

startProgram(USAGE, {});
const metrics = new RecordMetrics({
  maxNames: 100,
  urlScheme: 'http',
  genAi: 'pinned',
  isKnownModel: () => true,
  replicaUrl: (name) => `http://${name}:8000`,
});
measure('own sums', (record) => metrics.record(record));
measure("the SDK's instruments", createSdkRecorder());
