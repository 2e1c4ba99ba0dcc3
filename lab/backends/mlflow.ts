import { join } from 'node:path';
import type { RequestRecord } from '#otel/record/registry';
import { startServer } from '#testkit/programs/child.ts';
import { askJson, at, itemsAt, textAt, toSet } from './answers.ts';
import type { Backend, RunningBackend } from './backend.ts';
import { CANARY, type Fed, SENT, sumOf } from './feed.ts';
import { installPython, PYTHON_READY_MS, toPythonFolder } from './programs.ts';
import { isAlike, type Question, type Questions } from './question.ts';

const VERSION = '3.17.2';
const FOLDER = toPythonFolder('mlflow', VERSION);
const URL = 'http://127.0.0.1:5000';
const EXPERIMENT = '0';

/** MLflow of PyPI, asked by its REST API. */
export const MLFLOW: Backend = {
  id: 'mlflow',
  prepare: () => installPython(FOLDER, `mlflow==${VERSION}`, 'mlflow'),
  start: startMlflow,
};

async function startMlflow(folder: string): Promise<RunningBackend> {
  const store = `sqlite:///${join(folder, 'mlflow.db')}`;
  const command = {
    file: join(FOLDER, 'bin/mlflow'),
    args: ['server', '--port', '5000', '--workers', '1', '--backend-store-uri', store],
    env: { MLFLOW_DISABLE_TELEMETRY: 'true', PATH: `${join(FOLDER, 'bin')}:${process.env.PATH}` },
    cwd: folder,
  };
  const server = await startServer(
    command,
    { url: URL, path: '/health', readyMs: PYTHON_READY_MS },
    { logPath: join(folder, 'log') },
  );
  return {
    title: `MLflow ${VERSION}`,
    // It takes no metrics.
    direct: {
      config: { export: { endpoint: URL, interval: '100ms' }, metrics: { otlp: false } },
      env: { OTEL_EXPORTER_OTLP_HEADERS: `x-mlflow-experiment-id=${EXPERIMENT}` },
    },
    questions: toQuestions,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function toQuestions({ chat, stream, completion, embedding, failed, all }: Fed): Questions {
  /** What the search of the page finds, as the traces of records. */
  const find = (filter: string, wanted: readonly RequestRecord[]): Omit<Question, 'state'> => ({
    query: filter,
    wanted: toSet(wanted.map(({ trace_id }) => `tr-${trace_id}`)),
    ask: async () => toSet((await search(filter)).map((trace) => textAt(trace, 'trace_id'))),
  });
  return {
    latency: {
      state: 'lit',
      query: 'traces/search: execution_duration, state',
      // It counts whole milliseconds.
      wanted: [
        { seconds: Math.trunc(chat.e2e_ms) / 1000, state: 'OK' },
        { seconds: Math.trunc(failed.e2e_ms) / 1000, state: 'ERROR' },
      ],
      ask: async () => {
        const traces = await search('');
        return [chat, failed].map(({ trace_id }) => {
          const trace = traces.find((each) => at(each, 'trace_id') === `tr-${trace_id}`);
          return {
            seconds: Number.parseFloat(textAt(trace, 'execution_duration')),
            state: at(trace, 'state'),
          };
        });
      },
    },
    tokens: {
      state: 'lit',
      query: 'traces/metrics: SUM of input_tokens, output_tokens',
      wanted: [sumOf(all, 'prompt_tokens'), sumOf(all, 'completion_tokens')],
      ask: async () => [
        await sum('TRACES', 'input_tokens', 'SUM'),
        await sum('TRACES', 'output_tokens', 'SUM'),
      ],
    },
    firstToken: { state: 'attribute', ...find("span.attributes.gateway.ttft_ms LIKE '%'", [stream]) },
    cost: {
      state: 'own',
      query: 'traces/metrics: SUM of total_cost',
      wanted: { isThere: true, isOurs: false },
      ask: async () => {
        const cost = await sum('SPANS', 'total_cost', 'SUM');
        return { isThere: cost > 0, isOurs: isAlike(cost, sumOf(all, 'cost')) };
      },
    },
    model: {
      state: 'lit',
      query: 'traces/metrics: COUNT of span_count by span_model_name',
      wanted: { [SENT.model]: 4, down: 1 },
      ask: async () => {
        const points = await measure('SPANS', 'span_count', 'COUNT', ['span_model_name']);
        return Object.fromEntries(
          points
            .map((point) => [textAt(point, 'dimensions', 'span_model_name'), at(point, 'values', 'COUNT')])
            .filter(([name]) => name !== ''),
        );
      },
    },
    parameters: {
      state: 'attribute',
      ...find(`span.attributes.gen_ai.request.seed LIKE '%${SENT.seed}%'`, [chat, stream, failed]),
    },
    who: {
      state: 'lit',
      ...find(
        `metadata.\`mlflow.trace.user\` = '${SENT.user}' AND metadata.\`mlflow.trace.session\` = '${SENT.session}'`,
        all,
      ),
    },
    prompt: {
      state: 'attribute',
      ...find(`span.attributes.gen_ai.agent.name LIKE '%${SENT.agent}%'`, [
        chat,
        stream,
        completion,
        embedding,
        failed,
      ]),
    },
    route: {
      state: 'attribute',
      ...find(
        `span.attributes.gateway.route.reason LIKE '%${chat.route_reason}%'`,
        all.filter(({ route_reason }) => route_reason === chat.route_reason),
      ),
    },
    text: {
      state: 'text',
      query: 'traces/get: spans; traces/search: request_preview, response_preview',
      wanted: { request: undefined, response: undefined, hasText: false },
      ask: async () => {
        const [trace] = await search(`trace.request_id = 'tr-${chat.trace_id}'`);
        const whole = await askJson(`${URL}/api/3.0/mlflow/traces/get?trace_id=tr-${chat.trace_id}`);
        return {
          request: at(trace, 'request_preview'),
          response: at(trace, 'response_preview'),
          hasText: JSON.stringify([trace, whole]).includes(CANARY),
        };
      },
    },
  };
}

async function search(filter: string): Promise<readonly unknown[]> {
  const location = { type: 'MLFLOW_EXPERIMENT', mlflow_experiment: { experiment_id: EXPERIMENT } };
  const answer = await askJson(`${URL}/api/3.0/mlflow/traces/search`, {
    locations: [location],
    max_results: 100,
    ...(filter === '' ? {} : { filter }),
  });
  return itemsAt(answer, 'traces');
}

type ViewType = 'TRACES' | 'SPANS';
type Aggregation = 'SUM' | 'COUNT';

async function measure(
  view: ViewType,
  metric: string,
  aggregation: Aggregation,
  dimensions: readonly string[] = [],
): Promise<readonly unknown[]> {
  const answer = await askJson(`${URL}/api/3.0/mlflow/traces/metrics`, {
    experiment_ids: [EXPERIMENT],
    view_type: view,
    metric_name: metric,
    aggregations: [{ aggregation_type: aggregation }],
    dimensions,
  });
  return itemsAt(answer, 'data_points');
}

/** A metric of all traces; 0 if there is none. */
async function sum(view: ViewType, metric: string, aggregation: Aggregation): Promise<number> {
  const [point] = await measure(view, metric, aggregation);
  return Number(at(point, 'values', aggregation) ?? 0);
}
