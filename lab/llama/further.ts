import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import Anthropic, { APIError as AnthropicError } from '@anthropic-ai/sdk';
import OpenAI, { APIError } from 'openai';
import type { GatewayRecord, RecordedClient } from './client.ts';
import { INSTALLED_IN } from './engine.ts';
import type { Report } from './report.ts';

/** The model whose server has a template with tool calls. */
export const TOOLS_MODEL = 'tiny-tools';

/** The beginning of a call: the engine's grammar makes the model, whose weights are random, finish it. */
const BEGUN_CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1';
const SCHEMA = {
  type: 'object' as const,
  properties: { a: { type: 'integer', minimum: 1, maximum: 99 } },
  required: ['a'],
  additionalProperties: false,
};
const QUESTION = { role: 'user' as const, content: 'Add 1, and be brief.' };
const PLAIN = { model: TOOLS_MODEL, temperature: 0 };

const RESPONSE = { ...PLAIN, instructions: 'Be brief.', input: 'The sea.', max_output_tokens: 16 };
const RESPONSE_CALL = {
  ...PLAIN,
  max_output_tokens: 60,
  tool_choice: 'required' as const,
  tools: [{ type: 'function' as const, name: 'add', parameters: SCHEMA, strict: null }],
  input: [
    QUESTION,
    {
      type: 'message' as const,
      id: 'msg_1',
      role: 'assistant' as const,
      status: 'completed' as const,
      content: [{ type: 'output_text' as const, text: BEGUN_CALL, annotations: [] }],
    },
  ],
};
const MESSAGE = { ...PLAIN, system: 'Be brief.', max_tokens: 16, messages: [QUESTION] };
const MESSAGE_CALL = {
  ...PLAIN,
  max_tokens: 60,
  tool_choice: { type: 'any' as const },
  tools: [{ name: 'add', input_schema: SCHEMA }],
  messages: [QUESTION, { role: 'assistant' as const, content: BEGUN_CALL }],
};

/** What a client got: an object, or the events of a stream; and the id of the request. */
interface Got {
  readonly value: unknown;
  readonly requestId: string | null;
}

/** A call of a client of this server. */
type Call = (baseUrl: string) => Promise<Got>;

/** The SDKs' responses and messages: the client gets what it gets from the engine, and the record has its tokens. */
export async function checkFurther(client: RecordedClient, engineUrl: string, report: Report): Promise<void> {
  report.section('Responses and messages of the SDKs: the same as without the gateway');
  const gatewayUrl = client.openai.baseURL.replace(/\/v1$/, '');
  for (const [name, call] of Object.entries(CALLS)) {
    // What the engine has cached is part of its answer: the first call fills the cache.
    await call(engineUrl);
    const direct = await call(engineUrl);
    const relayed = await call(gatewayUrl);
    report.same(`${name}: same object`, comparable(relayed.value), comparable(direct.value));
    sameTokens(name, await client.recordById(relayed.requestId), relayed.value, report);
  }
  await checkPython(client, gatewayUrl, engineUrl, report);
}

const openai = (baseUrl: string) => new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'none', maxRetries: 0 });
const anthropic = (baseURL: string) => new Anthropic({ baseURL, apiKey: 'none', maxRetries: 0 });

const idOf = (response: Response) => response.headers.get('x-request-id');

async function collect(events: AsyncIterable<unknown>, response: Response): Promise<Got> {
  const value: unknown[] = [];
  for await (const event of events) value.push(event);
  return { value, requestId: idOf(response) };
}

/** The error that a call ends with. */
async function errorOf(call: Promise<unknown>): Promise<Got> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof APIError || error instanceof AnthropicError)) throw new Error('no error');
  const { status, error: body, headers } = error;
  return {
    value: { name: error.constructor.name, status, body },
    requestId: headers?.get('x-request-id') ?? null,
  };
}

const CALLS: Readonly<Record<string, Call>> = {
  async 'OpenAI responses'(url) {
    const { data, response } = await openai(url).responses.create(RESPONSE).withResponse();
    return { value: data, requestId: idOf(response) };
  },
  async 'OpenAI responses, streamed'(url) {
    const { data, response } = await openai(url)
      .responses.create({ ...RESPONSE, stream: true })
      .withResponse();
    return collect(data, response);
  },
  async 'OpenAI responses with a tool'(url) {
    const { data, response } = await openai(url).responses.create(RESPONSE_CALL).withResponse();
    return { value: data, requestId: idOf(response) };
  },
  async 'OpenAI responses with a tool, streamed'(url) {
    const { data, response } = await openai(url)
      .responses.create({ ...RESPONSE_CALL, stream: true })
      .withResponse();
    return collect(data, response);
  },
  'OpenAI responses, error': (url) =>
    errorOf(openai(url).responses.create({ ...RESPONSE, previous_response_id: 'resp_unknown' })),
  async 'Anthropic messages'(url) {
    const { data, response } = await anthropic(url).messages.create(MESSAGE).withResponse();
    return { value: data, requestId: idOf(response) };
  },
  async 'Anthropic messages, streamed'(url) {
    const { data, response } = await anthropic(url)
      .messages.create({ ...MESSAGE, stream: true })
      .withResponse();
    return collect(data, response);
  },
  async 'Anthropic messages with a tool'(url) {
    const { data, response } = await anthropic(url).messages.create(MESSAGE_CALL).withResponse();
    return { value: data, requestId: idOf(response) };
  },
  async 'Anthropic messages with a tool, streamed'(url) {
    const { data, response } = await anthropic(url)
      .messages.create({ ...MESSAGE_CALL, stream: true })
      .withResponse();
    return collect(data, response);
  },
  async 'Anthropic count of tokens'(url) {
    const { data, response } = await anthropic(url).messages.countTokens(MESSAGE).withResponse();
    return { value: data, requestId: idOf(response) };
  },
  'Anthropic messages, error': (url) =>
    errorOf(anthropic(url).messages.create({ ...MESSAGE, max_tokens: 'many' as unknown as number })),
};

/** Members that differ between two answers to the same request. */
const OWN_MEMBERS: ReadonlySet<string> = new Set([
  ...['id', 'item_id', 'call_id', 'created_at', 'completed_at', 'timings', '_request_id'],
]);

/** An answer without ids and times. */
function comparable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, each: unknown) => (OWN_MEMBERS.has(key) ? undefined : each)));
}

interface Usage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cache_read_input_tokens?: number | null;
  readonly input_tokens_details?: { readonly cached_tokens: number };
}

/** The usage in an answer or in the events of a stream, one laid over another. */
function usageOf(value: unknown): Usage {
  const events = (Array.isArray(value) ? value : [value]) as readonly {
    readonly usage?: Usage;
    readonly message?: { readonly usage?: Usage };
    readonly response?: { readonly usage?: Usage };
  }[];
  const told = events.map(({ usage, message, response }) => ({
    ...usage,
    ...message?.usage,
    ...response?.usage,
  }));
  return Object.assign({}, ...told) as Usage;
}

function sameTokens(name: string, record: GatewayRecord, value: unknown, report: Report): void {
  const usage = usageOf(value);
  const cached = usage.cache_read_input_tokens ?? usage.input_tokens_details?.cached_tokens;
  const isMessage = 'cache_read_input_tokens' in usage;
  const prompt = isMessage ? (usage.input_tokens ?? 0) + (cached ?? 0) : usage.input_tokens;
  report.same(
    `${name}: prompt, completion, cached tokens`,
    [record.prompt_tokens, record.completion_tokens, record.cached_tokens],
    [prompt, usage.output_tokens, cached],
  );
}

/** The same calls with the SDKs for Python, which print what they got as one object by name. */
async function checkPython(
  client: RecordedClient,
  gatewayUrl: string,
  engineUrl: string,
  report: Report,
): Promise<void> {
  const requests = JSON.stringify({
    response: RESPONSE,
    response_call: RESPONSE_CALL,
    message: MESSAGE,
    message_call: MESSAGE_CALL,
  });
  const run = (url: string) => {
    const script = join(import.meta.dirname, 'python_further.py');
    const { status, stdout, stderr } = spawnSync(
      join(INSTALLED_IN, 'venv/bin/python'),
      [script, url, requests],
      { encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(`python_further.py: ${stderr}`);
    return JSON.parse(stdout) as Record<string, { readonly value: unknown; readonly id: string | null }>;
  };
  run(engineUrl);
  const direct = run(engineUrl);
  const relayed = run(gatewayUrl);
  for (const [name, { value, id }] of Object.entries(relayed)) {
    report.same(`Python: ${name}: same object`, comparable(value), comparable(direct[name]?.value));
    sameTokens(`Python: ${name}`, await client.recordById(id), value, report);
  }
}
