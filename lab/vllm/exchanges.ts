import type { GatewayRecord, RecordedClient } from '../llama/client.ts';
import type { Report } from '../llama/report.ts';

/** A request: its path and its body. */
type Exchange = readonly [path: string, body: object];

const CHAT = '/v1/chat/completions';
const MESSAGES = [{ role: 'user', content: 'Tell me something about the sea.' }];
const PLAIN = { model: 'tiny', temperature: 0, seed: 1 };
const ASKED = { ...PLAIN, messages: MESSAGES, max_tokens: 12 };
const STREAM = { ...ASKED, stream: true };
const SCHEMA = {
  type: 'object',
  properties: { a: { type: 'integer', minimum: 1, maximum: 9 } },
  required: ['a'],
  additionalProperties: false,
};

const TOOL = { type: 'function', function: { name: 'add', parameters: SCHEMA } };

const chat = (body: object): Exchange => [CHAT, body];
const options = (stream_options: unknown): Exchange => chat({ ...STREAM, stream_options });

/** Each kind of request that the engine reads in its own way, right or wrong. */
const EXCHANGES: Readonly<Record<string, Exchange>> = {
  chat: chat(ASKED),
  'chat, two choices': chat({ ...ASKED, temperature: 1, n: 2 }),
  stream: chat(STREAM),
  'stream, two choices': chat({ ...STREAM, temperature: 1, n: 2 }),
  'stream, usage asked for': options({ include_usage: true }),
  'stream, usage asked for laxly': options({ include_usage: 'on' }),
  'stream, usage asked for wrongly': options({ include_usage: 'maybe' }),
  'stream, running figures alone': options({ continuous_usage_stats: true }),
  'stream, usage and running figures': options({ include_usage: true, continuous_usage_stats: true }),
  'stream, no options': options({}),
  'stream, options null': options(null),
  'stream "true"': chat({ ...STREAM, stream: 'true' }),
  'stream 1': chat({ ...STREAM, stream: 1 }),
  'options without a stream': chat({ ...ASKED, stream_options: { include_usage: true } }),
  'stream, log probabilities': chat({ ...STREAM, logprobs: true, top_logprobs: 2 }),
  'stream of a schema': chat({
    ...STREAM,
    max_tokens: 60,
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA } },
  }),
  'call of a tool': chat({ ...ASKED, max_tokens: 80, tools: [TOOL], tool_choice: 'required' }),
  'call of a tool, streamed': chat({ ...STREAM, max_tokens: 80, tools: [TOOL], tool_choice: 'required' }),
  completion: ['/v1/completions', { ...PLAIN, prompt: 'The sea', max_tokens: 8 }],
  'completion of two prompts': ['/v1/completions', { ...PLAIN, prompt: ['The sea', 'and'], max_tokens: 8 }],
  'completion of tokens': ['/v1/completions', { ...PLAIN, prompt: [100, 200, 300], max_tokens: 8 }],
  'completion, streamed': ['/v1/completions', { ...PLAIN, prompt: 'The sea', max_tokens: 8, stream: true }],
  'completion, streamed with its prompt': [
    '/v1/completions',
    { ...PLAIN, prompt: 'The sea', max_tokens: 8, stream: true, echo: true },
  ],
  response: ['/v1/responses', { ...PLAIN, input: 'The sea', max_output_tokens: 8 }],
  'response, streamed': ['/v1/responses', { ...PLAIN, input: 'The sea', max_output_tokens: 8, stream: true }],
  'response after one that is unknown': [
    '/v1/responses',
    { ...PLAIN, input: 'The sea', previous_response_id: 'resp_unknown' },
  ],
  message: ['/v1/messages', { ...PLAIN, messages: MESSAGES, max_tokens: 8 }],
  'message, streamed': ['/v1/messages', { ...PLAIN, messages: MESSAGES, max_tokens: 8, stream: true }],
  'message that calls a tool, streamed': [
    '/v1/messages',
    {
      ...PLAIN,
      messages: MESSAGES,
      max_tokens: 80,
      stream: true,
      tools: [{ name: 'add', input_schema: SCHEMA }],
      tool_choice: { type: 'any' },
    },
  ],
  'count of tokens': ['/v1/messages/count_tokens', { model: 'tiny', messages: MESSAGES }],
  'prompt too long': chat({ ...ASKED, messages: [{ role: 'user', content: 'far too long '.repeat(4000) }] }),
  'wrong temperature': chat({ ...STREAM, temperature: -1 }),
  'no messages': chat({ model: 'tiny' }),
};

/** Tokens that differ at every temperature above 0 are compared by what they consist of. */
const AT_RANDOM = /two choices/;
/** How often what differs is compared again. */
const AGAIN = 3;

/** Sends each request to the engine and through the gateway: what comes back is the same, and the record has its usage. */
export async function checkExchanges(
  name: string,
  client: RecordedClient,
  engineUrl: string,
  report: Report,
): Promise<void> {
  report.section(`${name}: the client gets what the engine sends`);
  const gatewayUrl = client.openai.baseURL.replace(/\/v1$/, '');
  for (const [what, exchange] of Object.entries(EXCHANGES)) {
    // What the engine has cached is part of its answer: the first request fills the cache.
    await send(engineUrl, exchange);
    const toCompared = AT_RANDOM.test(what) ? toShapes : withoutIds;
    let [direct, relayed] = await sendBoth(engineUrl, gatewayUrl, exchange);
    // On a busy machine the engine says two tokens in one event now and then.
    for (let again = 0; again < AGAIN && toCompared(direct) !== toCompared(relayed); again++)
      [direct, relayed] = await sendBoth(engineUrl, gatewayUrl, exchange);
    report.same(`${what}: status, type, body`, toCompared(relayed), toCompared(direct));
    const record = await client.recordById(relayed.requestId);
    report.same(`${what}: status of the record`, record.status, direct.status);
    if (direct.status === 200) await sameUsage(what, record, engineUrl, exchange, report);
  }
}

async function sendBoth(engineUrl: string, gatewayUrl: string, exchange: Exchange): Promise<[Got, Got]> {
  return [await send(engineUrl, exchange), await send(gatewayUrl, exchange)];
}

interface Got {
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
  readonly requestId: string | null;
}

async function send(url: string, [path, body]: Exchange): Promise<Got> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const { status } = response;
  const [type, requestId] = ['content-type', 'x-request-id'].map((name) => response.headers.get(name));
  return { status, type: type ?? null, text: await response.text(), requestId: requestId ?? null };
}

/** The engine's own usage of the request, which is asked for where it is not given. */
async function sameUsage(
  what: string,
  record: GatewayRecord,
  engineUrl: string,
  [path, body]: Exchange,
  report: Report,
): Promise<void> {
  const isAsked = 'stream' in body && !/responses|messages/.test(path);
  const whole = isAsked ? { ...body, stream_options: { include_usage: true } } : body;
  const { text } = await send(engineUrl, [path, whole]);
  const usages = [...text.matchAll(/"usage":(\{(?:[^{}]|\{[^{}]*\})*\})/g)].map(([, json = '{}']) =>
    JSON.parse(json),
  );
  const usage = Object.assign({}, ...usages);
  const expected = [
    usage.prompt_tokens ?? usage.input_tokens,
    usage.completion_tokens ?? usage.output_tokens,
  ];
  report.same(`${what}: tokens`, [record.prompt_tokens, record.completion_tokens], expected);
}

/** An answer without what differs between two answers to one request. */
function withoutIds({ status, type, text }: Got): string {
  const body = text
    .replace(/"(id|item_id|response_id|call_id)":"[^"]*"/g, '"$1":""')
    .replace(/"(created|created_at|completed_at)":[\d.]+/g, '"$1":0');
  return `${status} ${type} ${body}`;
}

/** The names of the members of a body, or of each of its events, each once. */
function toShapes({ status, type, text }: Got): string {
  const lines = text.replaceAll(/^data: /gm, '').split('\n\n');
  const shapes = lines.map((line) => [...line.matchAll(/"(\w+)":/g)].map(([, name]) => name).join());
  return `${status} ${type} ${[...new Set(shapes)].join(' ')}`;
}
