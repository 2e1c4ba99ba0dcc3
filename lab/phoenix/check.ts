import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { createSimulatedReplica } from '#simulate';
import { readSnippets } from '#testkit/docs-snippets.ts';
import { startServer } from '#testkit/programs/child.ts';
import { startGateway } from '#testkit/programs/gateway-process.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { takePicture } from './picture.ts';

/*
 * Sends requests through a gateway and compares what Phoenix' API returns: with the shipped collector configuration and
 * that of docs/backends.md between the gateway and Phoenix, or with --direct without a collector. main.ts runs it in a network namespace of its own, so
 * that all ports are the defaults. The environment names the programs.
 */

const { PHOENIX = '', COLLECTOR = '' } = process.env;
const isDirect = process.argv.includes('--direct');
const MODEL = 'llama-3.3-70b';
const GATEWAY = 'http://127.0.0.1:8080';
const API = 'http://127.0.0.1:6006';
const PROJECT = 'spangate';
const ARRIVES_WITHIN_MS = 30_000;

/** A span of Phoenix' API. */
interface PhoenixSpan {
  readonly name: string;
  readonly span_kind: string;
  readonly status_code: string;
  readonly parent_id: string | null;
  readonly context: { readonly trace_id: string };
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A request, and the usage that the client got. */
interface Sent {
  readonly path: string;
  readonly requestId: string;
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens?: number;
    readonly prompt_tokens_details?: { readonly cached_tokens: number } | null;
  };
}

await using cleanUp = new AsyncDisposableStack();
const { path: folder } = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-phoenix-')));
await startAll();

const sent = [
  await send('/v1/chat/completions', { messages: [{ role: 'user', content: longText() }], max_tokens: 48 }),
  await send('/v1/chat/completions', {
    messages: [{ role: 'user', content: `${longText()} And then?` }],
    max_tokens: 48,
    stream: true,
    stream_options: { include_usage: true },
  }),
  await send('/v1/completions', { prompt: 'Once upon a time', max_tokens: 8 }),
  await send('/v1/embeddings', { input: 'Once upon a time' }),
];
const spans = await untilArrived(sent.length);
const problems = sent.flatMap((each) => findProblems(each, spans));
for (const problem of problems) console.error(`NOT AS SENT: ${problem}`);
const way = isDirect ? 'directly' : 'through a collector';
console.log(
  `${sent.length} requests, ${spans.length} spans in Phoenix, ${problems.length} differences (${way})`,
);
if (process.argv.includes('--picture')) {
  const stream = spans.find(({ attributes }) => attributes['gateway.request_id'] === sent[1]?.requestId);
  const path = join(ROOT, 'docs/images/trace-phoenix.png');
  await takePicture(`${API}/redirects/traces/${stream?.context.trace_id}`, path);
  console.log(`picture: ${path}`);
}
process.exitCode = problems.length === 0 ? 0 : 1;

async function startAll(): Promise<void> {
  const phoenix = {
    file: join(PHOENIX, 'bin/phoenix'),
    args: ['serve'],
    env: {
      PHOENIX_HOST: '127.0.0.1',
      PHOENIX_WORKING_DIR: join(folder, 'phoenix'),
      PHOENIX_TELEMETRY_ENABLED: 'false',
      PHOENIX_ALLOW_EXTERNAL_RESOURCES: 'false',
    },
  };
  cleanUp.use(await startServer(phoenix, { url: API, path: '/healthz' }, toLog('phoenix')));
  if (!isDirect) await startCollector();
  const replica = createSimulatedReplica({ port: 8000, models: [MODEL], ttftMs: 180, gapMs: 15 });
  await replica.start();
  cleanUp.defer(() => replica.close());
  const env = { OTEL_RESOURCE_ATTRIBUTES: `openinference.project.name=${PROJECT}` };
  cleanUp.use(await startGateway(folder, toConfig(), env));
}

async function startCollector(): Promise<void> {
  const snippet = (await readSnippets(join(ROOT, 'docs/backends.md'), 'yaml')).get('Phoenix');
  if (snippet === undefined) throw new Error('docs/backends.md has no configuration for Phoenix');
  const overlay = join(folder, 'phoenix.yaml');
  await writeFile(overlay, snippet);
  const collector = {
    file: COLLECTOR,
    args: ['--config', join(ROOT, 'collector-config.yaml'), '--config', overlay],
    env: { PHOENIX_ENDPOINT: API, RECORDS_FILE: join(folder, 'records.jsonl') },
  };
  const health = { url: 'http://127.0.0.1:13133', path: '/' };
  cleanUp.use(await startServer(collector, health, toLog('collector')));
}

function toLog(name: string) {
  return { logPath: join(folder, `${name}.log`) };
}

/** One replica that is up, and one that is down: an attempt at the latter fails, and is part of the trace. */
function toConfig(): object {
  return {
    gateway: { listen: '127.0.0.1:8080', admin_listen: '127.0.0.1:9090' },
    state_dir: join(folder, 'state'),
    trace: { spans: 'attempts' },
    replicas: [
      { name: 'vllm-a', url: 'http://127.0.0.1:8000', models: [MODEL], engine: 'vllm' },
      { name: 'vllm-b', url: 'http://127.0.0.1:8001', models: [MODEL], engine: 'vllm' },
    ],
    export: { endpoint: isDirect ? API : 'http://127.0.0.1:4318', interval: '100ms' },
    // Phoenix takes no metrics.
    metrics: { otlp: !isDirect },
  };
}

function longText(): string {
  return 'The gateway relays a request to one of its replicas and records what it cost. '.repeat(15).trim();
}

async function send(path: string, body: object): Promise<Sent> {
  const response = await fetch(GATEWAY + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Tenant': 'acme', 'X-Feature': 'assistant' },
    body: JSON.stringify({ model: MODEL, ...body }),
  });
  const text = await response.text();
  const chunks = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json));
  const { usage } = chunks.length > 0 ? chunks.at(-1) : JSON.parse(text);
  return { path, requestId: response.headers.get('x-request-id') ?? '', usage };
}

/** Phoenix' spans as soon as `count` of them are records, or after 30 s. */
async function untilArrived(count: number): Promise<readonly PhoenixSpan[]> {
  const startedAtMs = performance.now();
  for (;;) {
    const response = await fetch(`${API}/v1/projects/${PROJECT}/spans?limit=100`);
    const data: readonly PhoenixSpan[] = response.ok
      ? ((await response.json()) as { data: PhoenixSpan[] }).data
      : [];
    const records = data.filter(({ attributes }) => attributes['gateway.request_id'] !== undefined);
    if (records.length >= count || performance.now() - startedAtMs > ARRIVES_WITHIN_MS) return data;
    await sleep(250);
  }
}

/** The attributes that Phoenix should have of a request. */
function toExpected({ path, usage }: Sent): Record<string, unknown> {
  const isEmbedding = path === '/v1/embeddings';
  return {
    span_kind: isEmbedding ? 'EMBEDDING' : 'LLM',
    [isEmbedding ? 'embedding.model_name' : 'llm.model_name']: MODEL,
    'llm.token_count.prompt': usage.prompt_tokens,
    ...(isEmbedding ? {} : { 'llm.token_count.completion': usage.completion_tokens }),
    'gateway.replica': 'vllm-a',
    'gateway.tenant': 'acme',
  };
}

function findProblems(request: Sent, spans: readonly PhoenixSpan[]): readonly string[] {
  const span = spans.find(({ attributes }) => attributes['gateway.request_id'] === request.requestId);
  if (span === undefined) return [`${request.path} is missing`];
  // The record's span has the fields, that of its operation what the conventions say of GenAI.
  const operation = spans.find(
    ({ context, name }) => context.trace_id === span.context.trace_id && !name.startsWith('POST'),
  );
  if (operation === undefined) return [`${request.path} has no operation`];
  const seen: Record<string, unknown> = {
    ...{ ...span.attributes, ...operation.attributes },
    span_kind: operation.span_kind,
  };
  return Object.entries(toExpected(request))
    .filter(([name, value]) => !isDeepStrictEqual(seen[name], value))
    .map(
      ([name, value]) =>
        `${request.path} ${name}: ${JSON.stringify(seen[name])}, not ${JSON.stringify(value)}`,
    );
}
