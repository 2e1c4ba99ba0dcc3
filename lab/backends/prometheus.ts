import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ADMIN_TOKEN } from '#testkit/programs/gateway-process.ts';
import { type RealPrometheus, startPrometheus } from '#testkit/servers/real-prometheus.ts';
import type { Backend, RunningBackend } from './backend.ts';
import { ADMIN, type Fed, SENT, sumOf } from './feed.ts';
import type { Question, Questions } from './question.ts';

/** Debian's Prometheus with the shipped configuration, asked in PromQL. */
export const PROMETHEUS: Backend = {
  id: 'prometheus',
  prepare: async () => void (await readVersion()),
  start,
};

async function start(): Promise<RunningBackend> {
  const version = await readVersion();
  const prometheus = await startPrometheus(ADMIN, ADMIN_TOKEN);
  return {
    title: `Prometheus ${version}`,
    // It asks for metrics; records go to a file.
    direct: { config: { export: { to: 'file' } } },
    questions: (fed) => toMetricQuestions(prometheus, fed),
    [Symbol.asyncDispose]: () => prometheus[Symbol.asyncDispose](),
  };
}

/** The version of the installed Prometheus. Rejects if there is none. */
async function readVersion(): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('prometheus', ['--version']);
  return /version (\S+?)[+ ]/.exec(stdout + stderr)?.[1] ?? '';
}

/** What metrics of the gateway are asked, wherever they come from. */
export function toMetricQuestions(prometheus: RealPrometheus, { chat, stream, failed, all }: Fed): Questions {
  const samples = (promql: string) => prometheus.query(promql);
  /** A query that gives one number. */
  const number = (query: string, wanted: number): Question => ({
    state: 'lit',
    query,
    wanted,
    ask: async () => Number((await samples(query))[0]?.value[1]),
  });
  /** A query that gives nothing. */
  const nothing = (state: 'dark' | 'text', query: string): Question => ({
    state,
    query,
    wanted: [],
    ask: () => samples(query),
  });
  const failures = 'http_server_request_duration_seconds_count{error_type!=""}';
  const models = 'sum by (gen_ai_request_model) (gen_ai_client_operation_duration_seconds_count)';
  return {
    latency: {
      state: 'lit',
      query: `sum(http_server_request_duration_seconds_sum); sum(${failures})`,
      wanted: [sumOf(all, 'e2e_ms') / 1000, 1],
      ask: async () =>
        Promise.all(
          ['sum(http_server_request_duration_seconds_sum)', `sum(${failures})`].map(async (query) =>
            Number((await samples(query))[0]?.value[1]),
          ),
        ),
    },
    tokens: number(
      'sum(gen_ai_client_token_usage_sum)',
      sumOf(all, 'prompt_tokens') + sumOf(all, 'completion_tokens'),
    ),
    firstToken: number('sum(gen_ai_server_time_to_first_token_seconds_sum)', (stream.ttft_ms ?? 0) / 1000),
    cost: number('sum(gateway_cost_total)', sumOf(all, 'cost')),
    model: {
      state: 'lit',
      query: models,
      wanted: { [SENT.model]: all.length - 1, [String(failed.model)]: 1 },
      ask: async () =>
        Object.fromEntries(
          (await samples(models)).map(({ metric, value }) => [metric.gen_ai_request_model, Number(value[1])]),
        ),
    },
    parameters: nothing('dark', 'count({gen_ai_request_temperature!=""})'),
    who: nothing('dark', 'count({user_id!=""} or {session_id!=""})'),
    prompt: nothing('dark', 'count({gen_ai_agent_name!=""} or {gen_ai_prompt_name!=""})'),
    route: nothing(
      'dark',
      `count({__name__=~"gateway_route.*"} or {gateway_route_reason="${chat.route_reason}"})`,
    ),
    text: nothing('text', 'count({__name__=~".*messages.*"})'),
  };
}
