import { join } from 'node:path';
import type { RequestRecord } from '#otel/record/registry';
import { startServer } from '#testkit/programs/child.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { askJson, at, itemsAt, textAt, toSet } from './answers.ts';
import type { Backend, RunningBackend } from './backend.ts';
import { CANARY, type Fed, SENT, sumOf } from './feed.ts';
import { installPython, PYTHON_READY_MS, toPythonFolder } from './programs.ts';
import { isAlike, type Question, type Questions } from './question.ts';

const VERSION = '20.26.1';
const FOLDER = toPythonFolder('phoenix', VERSION);
const URL = 'http://127.0.0.1:6006';
const PROJECT = 'spangate';
const PROJECT_ENV = { OTEL_RESOURCE_ATTRIBUTES: `openinference.project.name=${PROJECT}` };

/** Arize Phoenix of PyPI, asked by the GraphQL of its own page. */
export const PHOENIX: Backend = {
  id: 'phoenix',
  prepare: () => installPython(FOLDER, `arize-phoenix==${VERSION}`, 'phoenix'),
  start: startPhoenix,
};

async function startPhoenix(folder: string): Promise<RunningBackend> {
  const command = {
    file: join(FOLDER, 'bin/phoenix'),
    args: ['serve'],
    env: {
      PHOENIX_HOST: '127.0.0.1',
      PHOENIX_WORKING_DIR: folder,
      PHOENIX_TELEMETRY_ENABLED: 'false',
      PHOENIX_ALLOW_EXTERNAL_RESOURCES: 'false',
    },
  };
  const server = await startServer(
    command,
    { url: URL, path: '/healthz', readyMs: PYTHON_READY_MS },
    { logPath: join(folder, 'log') },
  );
  return {
    title: `Phoenix ${VERSION}`,
    // It takes no metrics.
    direct: {
      config: { export: { endpoint: URL, interval: '100ms' }, metrics: { otlp: false } },
      env: PROJECT_ENV,
    },
    behindCollector: { heading: 'Phoenix', env: { PHOENIX_ENDPOINT: URL }, way: { env: PROJECT_ENV } },
    questions: toQuestions,
    async takePicture(browser, fed) {
      const path = 'trace-phoenix.png';
      const retried = fed.all.find(({ attempts, status }) => attempts === 2 && status === 200);
      const page = await browser.newPage({ viewport: { width: 1500, height: 1290 }, colorScheme: 'light' });
      await page.addInitScript(() => localStorage.setItem('arize-phoenix-theme', 'light'));
      await page.goto(`${URL}/redirects/traces/${retried?.trace_id}`);
      const trace = page.getByRole('dialog');
      await trace.getByRole('tab', { name: 'Attributes' }).click();
      await trace.getByRole('button', { name: 'Search JSON keys and values' }).click();
      await page.keyboard.type('gateway.');
      await trace.getByText('llm.model_name').waitFor({ state: 'hidden' });
      await trace.getByText('gateway.replica').waitFor();
      await trace.screenshot({ path: join(ROOT, 'docs/images', path), animations: 'disabled' });
      return path;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function toQuestions({ chat, stream, completion, failed, all }: Fed): Questions {
  const generated = [chat, stream, completion];
  const trace = (of: RequestRecord, fields: string) =>
    askProject(`trace(traceId: "${of.trace_id}") { ${fields} }`);
  /** What the page's filter of spans finds, as the traces of records. */
  const filter = (condition: string, wanted: readonly RequestRecord[]): Omit<Question, 'state'> => ({
    query: condition,
    wanted: toSet(wanted.map(({ trace_id }) => trace_id)),
    ask: async () => {
      const arguments_ = `first: 100, filterCondition: ${JSON.stringify(condition)}`;
      const spans = await askProject(`spans(${arguments_}) { edges { node { trace { traceId } } } }`);
      return toSet(itemsAt(spans, 'edges').map((edge) => textAt(edge, 'node', 'trace', 'traceId')));
    },
  });
  return {
    latency: {
      state: 'lit',
      query: 'trace(traceId) { latencyMs rootSpan { statusCode } }',
      wanted: [
        { latencyMs: chat.e2e_ms, rootSpan: { statusCode: 'UNSET' } },
        { latencyMs: failed.e2e_ms, rootSpan: { statusCode: 'ERROR' } },
      ],
      ask: () => Promise.all([chat, failed].map((each) => trace(each, 'latencyMs rootSpan { statusCode }'))),
    },
    tokens: {
      state: 'lit',
      query: 'tokenCountPrompt tokenCountCompletion',
      // It sums those of spans of the kind LLM.
      wanted: [sumOf(generated, 'prompt_tokens'), sumOf(generated, 'completion_tokens')],
      ask: () => Promise.all([askProject('tokenCountPrompt'), askProject('tokenCountCompletion')]),
    },
    firstToken: { state: 'attribute', ...filter("attributes['gateway']['ttft_ms'] > 0", [stream]) },
    cost: {
      state: 'own',
      query: 'costSummary { total { cost } }',
      wanted: { isThere: true, isOurs: false },
      ask: async () => {
        const cost = Number(at(await askProject('costSummary { total { cost } }'), 'total', 'cost') ?? 0);
        return { isThere: cost > 0, isOurs: isAlike(cost, sumOf(all, 'cost')) };
      },
    },
    model: { state: 'lit', ...filter(`llm.model_name == '${SENT.model}'`, generated) },
    parameters: {
      state: 'lit',
      query: 'trace(traceId) { spans { attributes } }: llm.invocation_parameters',
      wanted: { temperature: SENT.temperature, seed: SENT.seed, max_tokens: 48 },
      ask: async () => {
        const attributes = await readAttributes(chat);
        const texts = attributes.map((each) => textAt(each, 'llm', 'invocation_parameters'));
        return JSON.parse(texts.find((text) => text !== '') ?? 'null');
      },
    },
    who: {
      state: 'lit',
      query: 'sessions { sessionId userId numTraces }',
      wanted: [{ sessionId: SENT.session, userId: SENT.user, numTraces: all.length }],
      ask: async () => {
        const sessions = await askProject(
          'sessions(first: 10) { edges { node { sessionId userId numTraces } } }',
        );
        return itemsAt(sessions, 'edges').map((edge) => at(edge, 'node'));
      },
    },
    prompt: {
      state: 'attribute',
      ...filter(`attributes['gen_ai']['agent']['name'] == '${SENT.agent}'`, all),
    },
    route: {
      state: 'attribute',
      ...filter(
        `attributes['gateway']['route']['reason'] == '${chat.route_reason}'`,
        all.filter(({ route_reason }) => route_reason === chat.route_reason),
      ),
    },
    text: {
      state: 'text',
      query: 'trace(traceId) { rootSpan { input { value } output { value } } }',
      wanted: { shown: { rootSpan: { input: null, output: null } }, hasText: false },
      ask: async () => ({
        shown: await trace(chat, 'rootSpan { input { value } output { value } }'),
        hasText: JSON.stringify(await readAttributes(chat)).includes(CANARY),
      }),
    },
  };
}

/** The attributes of each span of a trace. */
async function readAttributes({ trace_id }: RequestRecord): Promise<readonly unknown[]> {
  const trace = await askProject(
    `trace(traceId: "${trace_id}") { spans(first: 100) { edges { node { attributes } } } }`,
  );
  return itemsAt(trace, 'spans', 'edges').map((edge) => JSON.parse(textAt(edge, 'node', 'attributes')));
}

/** The value of a field of the project. */
async function askProject(field: string): Promise<unknown> {
  const query = `{ projects { edges { node { name answer: ${field} } } } }`;
  const answer = await askJson(`${URL}/graphql`, { query });
  const errors = itemsAt(answer, 'errors').map((error) => textAt(error, 'message'));
  if (errors.length > 0) throw new Error(errors.join('; '));
  const projects = itemsAt(answer, 'data', 'projects', 'edges').map((edge) => at(edge, 'node'));
  return at(
    projects.find((each) => at(each, 'name') === PROJECT),
    'answer',
  );
}
