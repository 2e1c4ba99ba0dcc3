import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Server, startServer } from '#testkit/programs/child.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { type RealPrometheus, startPrometheus } from '#testkit/servers/real-prometheus.ts';
import type { Backend, RunningBackend } from './backend.ts';
import type { Fed } from './feed.ts';
import { findTraceIds, JAEGER, JAEGER_OTLP, startJaeger } from './jaeger.ts';
import { build, findBuilt } from './programs.ts';
import { toMetricQuestions } from './prometheus.ts';
import { findProblem, type Question } from './question.ts';

const BUILD = 'scripts/otelcol/build.sh';
const METRICS = '127.0.0.1:8889';
/** How the gateway sends to the collector. */
export const TO_COLLECTOR = {
  export: { endpoint: 'http://127.0.0.1:4318', interval: '100ms' },
  metrics: { otlp: true, interval: '1s' },
} as const;

/**
 * The shipped collector, whose tail sampling leaves nothing but what must be kept, before Jaeger; and the metrics that it
 * makes and passes on, asked through Prometheus.
 */
export const COLLECTOR: Backend = {
  id: 'collector',
  async prepare() {
    await build(BUILD);
    await JAEGER.prepare();
  },
  start,
};

/** Starts the collector with the shipped configuration and one more on top of it. */
export async function startCollector(
  folder: string,
  overlays: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Server> {
  const configs = [join(ROOT, 'collector-config.yaml'), ...overlays];
  const command = {
    file: findBuilt(BUILD),
    args: configs.flatMap((path) => ['--config', path]),
    env: { RECORDS_FILE: join(folder, 'records.jsonl'), ...env },
  };
  const health = { url: 'http://127.0.0.1:13133', path: '/' };
  return await startServer(command, health, { logPath: join(folder, 'collector.log') });
}

async function start(folder: string): Promise<RunningBackend> {
  await using cleanUp = new AsyncDisposableStack();
  const jaegerFolder = join(folder, 'jaeger');
  await mkdir(jaegerFolder);
  cleanUp.use(await startJaeger(jaegerFolder));
  cleanUp.use(await startCollector(folder, [], { JAEGER_ENDPOINT: JAEGER_OTLP, SAMPLE_PERCENT: '0' }));
  const prometheus = cleanUp.use(await startPrometheus(METRICS, ''));
  const running = cleanUp.move();
  return {
    title: 'OpenTelemetry Collector 0.155.0',
    direct: { config: TO_COLLECTOR },
    questions: (fed) => ({ ...toMetricQuestions(prometheus, fed), latency: toSpanMetrics(prometheus, fed) }),
    async findMore(fed) {
      const problem = await findProblem(toSampled(fed));
      return problem === null ? [] : [`tail sampling left ${problem}`];
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Requests and errors, as `span_metrics` counts them by spans. */
function toSpanMetrics(prometheus: RealPrometheus, { failed, all }: Fed): Question {
  const query =
    'sum by (status_code) (traces_span_metrics_duration_seconds_count{span_kind="SPAN_KIND_SERVER"})';
  return {
    state: 'lit',
    query,
    wanted: { STATUS_CODE_UNSET: all.length - 1, STATUS_CODE_ERROR: [failed].length },
    ask: async () =>
      Object.fromEntries(
        (await prometheus.query(query)).map(({ metric, value }) => [metric.status_code, Number(value[1])]),
      ),
  };
}

/** With a share of 0, the failed request and those with several attempts are left, whole. */
function toSampled({ all }: Fed): Question {
  const kept = all.filter(({ status, attempts = 0 }) => status >= 500 || attempts > 1);
  return {
    state: 'lit',
    query: 'traces',
    wanted: kept.map(({ trace_id }) => trace_id).toSorted(),
    ask: () => findTraceIds(),
  };
}
