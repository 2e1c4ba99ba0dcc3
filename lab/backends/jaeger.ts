import { join } from 'node:path';
import type { RequestRecord } from '#otel/record/registry';
import { startServer } from '#testkit/programs/child.ts';
import { askJson, at, itemsAt, textAt, toSet } from './answers.ts';
import type { Backend, RunningBackend } from './backend.ts';
import { CANARY, type Fed, SENT } from './feed.ts';
import { build, findBuilt } from './programs.ts';
import { findProblem, type Question, type Questions } from './question.ts';

const BUILD = ['scripts/kubernetes/build.sh', 'all-in-one'] as const;
const API = 'http://127.0.0.1:16686';
/** Where the shipped collector configuration sends to by default: the collector itself has Jaeger's own port. */
export const JAEGER_OTLP = 'http://127.0.0.1:14318';

/** Jaeger 1 in one process, built without its page, asked by the API of that page. */
export const JAEGER: Backend = {
  id: 'jaeger',
  prepare: () => build(...BUILD),
  start: startJaeger,
};

/** Starts Jaeger with an empty memory. */
export async function startJaeger(folder: string): Promise<RunningBackend> {
  const built = findBuilt(...BUILD);
  const command = {
    file: join(built, 'all-in-one'),
    args: [
      `--collector.otlp.http.host-port=${new URL(JAEGER_OTLP).host}`,
      '--collector.otlp.grpc.host-port=127.0.0.1:14317',
      '--query.http-server.host-port=127.0.0.1:16686',
    ],
  };
  const server = await startServer(
    command,
    { url: API, path: '/api/services' },
    { logPath: join(folder, 'log') },
  );
  return {
    title: `Jaeger ${/v([\d.]+)$/.exec(built)?.[1]}`,
    direct: { config: { export: { endpoint: JAEGER_OTLP, interval: '100ms' }, metrics: { otlp: false } } },
    behindCollector: { heading: null, env: { JAEGER_ENDPOINT: JAEGER_OTLP } },
    questions: toQuestions,
    async findMore() {
      const problem = await findProblem(EDGES);
      return problem === null ? [] : [`System Architecture: ${problem}`];
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** The page System Architecture has edges between services that send spans; the replicas here send none. */
const EDGES: Question = {
  state: 'dark',
  query: 'dependencies',
  wanted: [],
  ask: async () =>
    itemsAt(await askJson(`${API}/api/dependencies?endTs=${Date.now()}&lookback=3600000`), 'data'),
};

function toQuestions({ chat, stream, failed, all }: Fed): Questions {
  /** What the search by tags finds, as the traces of records. */
  const find = (
    tags: Readonly<Record<string, string>>,
    wanted: readonly RequestRecord[],
  ): Omit<Question, 'state'> => ({
    query: Object.entries(tags)
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
    wanted: toSet(wanted.map(({ trace_id }) => trace_id)),
    ask: async () => findTraceIds({ tags: JSON.stringify(tags) }),
  });
  return {
    latency: {
      state: 'lit',
      query: 'error=true of the operation POST /v1/chat/completions; the duration of a trace',
      wanted: { failed: [failed.trace_id], chatMs: chat.e2e_ms },
      ask: async () => ({
        failed: await findTraceIds({
          operation: 'POST /v1/chat/completions',
          tags: JSON.stringify({ error: 'true' }),
        }),
        chatMs: Number(at((await readSpans(chat)).find(isRoot), 'duration')) / 1000,
      }),
    },
    tokens: {
      state: 'attribute',
      ...find(
        { 'gen_ai.usage.output_tokens': String(stream.completion_tokens) },
        all.filter(({ completion_tokens }) => completion_tokens === stream.completion_tokens),
      ),
    },
    firstToken: { state: 'attribute', ...read(stream, 'gateway.ttft_ms', stream.ttft_ms) },
    cost: { state: 'attribute', ...read(chat, 'gen_ai.usage.cost', chat.cost) },
    model: { state: 'attribute', ...find({ 'gen_ai.request.model': 'down' }, [failed]) },
    parameters: {
      state: 'attribute',
      ...find({ 'gen_ai.request.seed': String(SENT.seed) }, [chat, stream, failed]),
    },
    who: { state: 'attribute', ...find({ 'user.id': SENT.user, 'session.id': SENT.session }, all) },
    prompt: {
      state: 'attribute',
      ...find({ 'gen_ai.agent.name': SENT.agent, 'gen_ai.prompt.name': SENT.prompt }, all),
    },
    route: {
      state: 'attribute',
      ...find(
        { 'gateway.route.reason': String(chat.route_reason) },
        all.filter(({ route_reason }) => route_reason === chat.route_reason),
      ),
    },
    text: {
      state: 'text',
      query: 'traces/{id}',
      wanted: { hasSpans: true, hasText: false },
      ask: async () => {
        const text = JSON.stringify(await readSpans(chat));
        return { hasSpans: text.length > 2, hasText: text.includes(CANARY) };
      },
    },
  };
}

/** The ids of all traces, or of those that a search finds. */
export async function findTraceIds(
  search: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  const parameters = new URLSearchParams({ service: 'spangate', limit: '1000', lookback: '1h', ...search });
  const traces = itemsAt(await askJson(`${API}/api/traces?${parameters}`), 'data');
  return toSet(traces.map((trace) => textAt(trace, 'traceID')));
}

/** An attribute of a trace. The search compares texts, which is of no use for a number with decimals. */
function read(record: RequestRecord, name: string, wanted: unknown): Omit<Question, 'state'> {
  return {
    query: `traces/{id}: ${name}`,
    wanted: [wanted],
    ask: async () =>
      (await readSpans(record))
        .flatMap((span) => itemsAt(span, 'tags'))
        .filter((tag) => at(tag, 'key') === name)
        .map((tag) => at(tag, 'value')),
  };
}

async function readSpans({ trace_id }: RequestRecord): Promise<readonly unknown[]> {
  return itemsAt(await askJson(`${API}/api/traces/${trace_id}`), 'data', 0, 'spans');
}

/** The gateway begins a trace with the span of the request. */
function isRoot(span: unknown): boolean {
  return textAt(span, 'operationName').startsWith('POST ');
}
