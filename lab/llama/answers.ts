import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type OpenAI from 'openai';
import { NotFoundError } from 'openai';
import type { GatewayRecord, RecordedClient } from './client.ts';
import { INSTALLED_IN } from './engine.ts';
import type { Report } from './report.ts';

/** Members of llama.cpp beside those of OpenAI. */
interface EngineExtras {
  readonly timings?: Readonly<Record<string, number>>;
}

type Usage = Pick<OpenAI.CompletionUsage, 'prompt_tokens' | 'completion_tokens' | 'prompt_tokens_details'>;

export const QUESTION: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'user', content: 'Tell me something about the sea, and be brief.' },
];

const TOOLS: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: {
      name: 'add',
      parameters: {
        type: 'object',
        properties: { a: { type: 'integer' }, b: { type: 'integer' } },
        required: ['a', 'b'],
      },
    },
  },
];

/** Answers that are not streamed: the record has the figures of the engine. */
export async function checkAnswers(client: RecordedClient, report: Report): Promise<void> {
  report.section('Whole answers: the record has the figures of the engine');
  const chat = await client.openai.chat.completions
    .create({ model: 'tiny', messages: QUESTION, max_tokens: 24 })
    .withResponse();
  const record = await client.recordOf(chat.response);
  sameFigures('chat', record, chat.data, report);
  report.same('chat: finish_reasons', record.finish_reasons, [chat.data.choices[0]?.finish_reason]);
  report.same('chat: max_tokens', record.max_tokens, 24);
  report.same(
    'chat: status, replica, attempts',
    [record.status, record.replica, record.attempts],
    [200, 'tiny', 1],
  );

  const tools = await client.openai.chat.completions
    .create({ model: 'tiny', messages: QUESTION, tools: TOOLS, tool_choice: 'required', max_tokens: 128 })
    .withResponse();
  const toolsRecord = await client.recordOf(tools.response);
  sameFigures('tools', toolsRecord, tools.data, report);
  report.same('tools: finish_reasons', toolsRecord.finish_reasons, [tools.data.choices[0]?.finish_reason]);

  const completion = await client.openai.completions
    .create({ model: 'tiny', prompt: 'The sea is', max_tokens: 24 })
    .withResponse();
  sameFigures('completion', await client.recordOf(completion.response), completion.data, report);

  const embeddings = await client.openai.embeddings
    .create({ model: 'tiny-embed', input: ['The sea', 'and the wind'] })
    .withResponse();
  const embeddingsRecord = await client.recordOf(embeddings.response);
  report.same(
    'embeddings: prompt_tokens',
    embeddingsRecord.prompt_tokens,
    embeddings.data.usage.prompt_tokens,
  );
  report.same('embeddings: vectors', embeddings.data.data.length, 2);
  report.same('embeddings: prompt_chars', embeddingsRecord.prompt_chars, 19);
}

/** Streams with usage, without it, with tools, and of completions: their figures, and what the client gets. */
export async function checkStreams(client: RecordedClient, report: Report): Promise<void> {
  report.section('Streams: the record has the figures, whether or not the client asked for them');
  const asked = { model: 'tiny', messages: QUESTION, max_tokens: 24, stream: true } as const;
  for (const [name, request] of [
    ['stream with usage', { ...asked, stream_options: { include_usage: true } }],
    ['stream without usage', asked],
    ['stream with tools', { ...asked, tools: TOOLS, tool_choice: 'required', max_tokens: 128 }],
  ] as const) {
    const { data, response } = await client.openai.chat.completions.create(request).withResponse();
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of data) chunks.push(chunk);
    const record = await client.recordOf(response);
    sameStream(name, record, chunks, 'stream_options' in request, report);
  }
  const { data, response } = await client.openai.completions
    .create({ model: 'tiny', prompt: 'The sea is', max_tokens: 24, stream: true })
    .withResponse();
  const chunks: OpenAI.Completion[] = [];
  for await (const chunk of data) chunks.push(chunk);
  // Completions of llama.cpp have usage on the last chunk, asked for or not.
  sameStream('completion stream', await client.recordOf(response), chunks, true, report);
}

function sameStream(
  name: string,
  record: GatewayRecord,
  chunks: readonly (OpenAI.ChatCompletionChunk | OpenAI.Completion)[],
  isUsageDue: boolean,
  report: Report,
): void {
  const usages = chunks.flatMap(({ usage }) => usage ?? []);
  const extras = (chunks as readonly EngineExtras[]).filter(({ timings }) => timings !== undefined);
  const { timings } = extras[0] ?? {};
  const reasons = chunks.flatMap(({ choices }) =>
    choices.flatMap(({ finish_reason }) => finish_reason ?? []),
  );
  report.same(`${name}: usage chunks that the client got`, usages.length, isUsageDue ? 1 : 0);
  report.same(`${name}: chunks with timings that the client got`, extras.length, 1);
  report.same(`${name}: finish_reasons`, record.finish_reasons, reasons);
  // The engine's own count where usage was withheld: prompt tokens are those processed and those cached.
  const usage = usages[0] ?? {
    prompt_tokens: (timings?.prompt_n ?? 0) + (timings?.cache_n ?? 0),
    completion_tokens: timings?.predicted_n ?? 0,
    prompt_tokens_details: { cached_tokens: timings?.cache_n ?? 0 },
  };
  sameFigures(name, record, { usage, ...(timings && { timings }) }, report);
}

function sameFigures(
  name: string,
  record: GatewayRecord,
  answer: { readonly usage?: Usage } & EngineExtras,
  report: Report,
): void {
  const { usage, timings = {} } = answer;
  report.same(
    `${name}: prompt, completion, cached tokens`,
    [record.prompt_tokens, record.completion_tokens, record.cached_tokens],
    [usage?.prompt_tokens, usage?.completion_tokens, usage?.prompt_tokens_details?.cached_tokens],
  );
  const recorded = Object.entries(record).filter(([key]) => key.startsWith('timings.'));
  const isSame = recorded.every(([key, value]) => timings[key.slice('timings.'.length)] === value);
  report.holds(
    `${name}: ${recorded.length} of the engine's ${Object.keys(timings).length} timings are recorded, equal`,
    isSame && recorded.length === Object.keys(timings).length,
  );
}

/** Errors, with their answers and records. */
export async function checkErrors(client: RecordedClient, engineUrl: string, report: Report): Promise<void> {
  report.section('Errors');
  const unknown = await client.openai.chat.completions
    .create({ model: 'nobody', messages: QUESTION })
    .then(() => null)
    .catch((error: unknown) => error);
  const isKnown = unknown instanceof NotFoundError;
  report.same('unknown model: code', isKnown ? unknown.code : null, 'model_not_found');
  const unknownRecord = await client.recordById(
    isKnown ? (unknown.headers.get('x-request-id') ?? null) : null,
  );
  report.same(
    'unknown model: status, error_type, replica',
    [unknownRecord.status, unknownRecord.error_type, unknownRecord.replica],
    [404, 'model_not_found', undefined],
  );

  const body = JSON.stringify({
    model: 'tiny',
    messages: [{ role: 'user', content: 'far too long '.repeat(4000) }],
  });
  const post = (url: string) => fetch(`${url}/chat/completions`, { method: 'POST', body });
  const relayed = await post(client.openai.baseURL);
  const direct = await post(`${engineUrl}/v1`);
  report.same('too long a prompt: status', relayed.status, direct.status);
  report.same('too long a prompt: body, byte for byte', await relayed.text(), await direct.text());
  report.same('too long a prompt: recorded status', (await client.recordOf(relayed)).status, direct.status);
}

/** OpenAI's SDK for Python, if the engine's installation has it. */
export async function checkPython(client: RecordedClient, report: Report): Promise<void> {
  report.section("OpenAI's SDK for Python");
  const script = join(import.meta.dirname, 'python_client.py');
  const { status, stdout, stderr } = spawnSync(
    join(INSTALLED_IN, 'venv/bin/python'),
    [script, client.openai.baseURL],
    { encoding: 'utf8' },
  );
  if (stderr.includes("No module named 'openai'")) {
    report.note('not installed: skipped');
    return;
  }
  report.same('exit status', status, 0);
  if (status !== 0) return;
  const found = JSON.parse(stdout) as {
    version: string;
    unknown: string;
  } & Record<'chat' | 'stream' | 'embeddings', { id: string; usage: Usage }>;
  report.note(`openai ${found.version}`);
  for (const name of ['chat', 'stream', 'embeddings'] as const) {
    const record = await client.recordById(found[name].id);
    const { prompt_tokens, completion_tokens } = found[name].usage;
    report.same(
      `${name}: prompt and completion tokens`,
      [record.prompt_tokens, record.completion_tokens],
      [prompt_tokens, completion_tokens],
    );
  }
  report.same('unknown model: code', found.unknown, 'model_not_found');
}
