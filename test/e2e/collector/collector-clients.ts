import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import type { StartedGateway } from '#testkit/start-gateway.ts';

const run = promisify(execFile);
const SENTENCE = 'A gateway stands between clients and replicas and counts what passes. ';

/** What a client knows of one request, to be compared with its record. */
export interface ClientFacts {
  /** The X-Request-Id of the response. */
  readonly requestId: string;
  readonly status: number;
  readonly stream: boolean;
  readonly endpoint: '/v1/chat/completions' | '/v1/completions' | '/v1/embeddings';
  readonly clientRequestId: string;
  readonly tenant: string;
  /** Code points of the prompt sent; absent where it could not be read. */
  readonly promptChars?: number;
  readonly maxTokens?: number;
  /** Of a stream the events with text, elsewhere the usage in the answer; absent for embeddings and errors. */
  readonly completionTokens?: number;
}

/** Sends the tasks 0, 1, … with so many at a time. */
export async function runConcurrently(
  count: number,
  concurrency: number,
  task: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

/**
 * Sends one request of a mix, by the official client, by curl or by fetch: chats, completions and embeddings, plain and
 * streamed, with usage asked for or not, several choices, a model that nobody serves, a body that is no JSON.
 */
export function sendMixed(index: number, gateway: StartedGateway): Promise<ClientFacts> {
  const words = SENTENCE.repeat(1 + (index % 30));
  const sender = { gateway, clientRequestId: `client-${index}`, tenant: `tenant-${index % 7}` };
  const limit = 3 + (index % 9);
  const chat = { model: 'm', messages: [{ role: 'user' as const, content: words }] };
  // Each curl is a process of its own: only some of the requests are worth one.
  const bare = index % 50 < 10 ? byCurl : byFetch;
  switch (index % 10) {
    case 0:
      return byClient(sender, { ...chat, max_tokens: limit });
    case 1:
      return byClient(sender, { ...chat, stream: true });
    case 2:
      return byClient(sender, { ...chat, stream: true, stream_options: { include_usage: true } });
    case 3:
      return byClient(sender, { ...chat, stream: true, n: 2, max_tokens: limit });
    case 4:
      return byClient(sender, { model: 'm', prompt: words, max_tokens: limit });
    case 5:
      return byClient(sender, { model: 'm', prompt: words, max_tokens: limit, stream: true });
    case 6:
      return byClient(sender, { model: 'm', input: words });
    case 7:
      return bare(sender, { ...chat, stream: true });
    case 8:
      return bare(sender, { ...chat, max_tokens: limit });
    default:
      return index % 20 === 9 ? bare(sender, { ...chat, model: 'nobody' }) : bare(sender, '{"model":');
  }
}

interface Sender {
  readonly gateway: StartedGateway;
  readonly clientRequestId: string;
  readonly tenant: string;
}

interface Body {
  readonly model: string;
  readonly messages?: readonly { readonly role: 'user'; readonly content: string }[];
  readonly prompt?: string;
  readonly input?: string;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage: boolean };
  readonly n?: number;
  readonly max_tokens?: number;
}

/** One event of a stream, of a chat or of a completion. */
interface Chunk {
  readonly choices: readonly {
    readonly text?: string;
    readonly delta?: { readonly content?: string | null };
  }[];
}

async function byClient(sender: Sender, body: Body): Promise<ClientFacts> {
  const endpoint = endpointOf(body);
  const client = new OpenAI({ baseURL: sender.gateway.url, apiKey: 'none', maxRetries: 0 });
  const { data, response } = await client
    .post<unknown>(endpoint, { body, headers: headersOf(sender), stream: body.stream ?? false })
    .withResponse();
  const tokens =
    body.stream === true
      ? countTokens(await Array.fromAsync(data as AsyncIterable<Chunk>))
      : (data as { usage: { completion_tokens?: number } }).usage.completion_tokens;
  return toFacts(sender, body, {
    requestId: response.headers.get('x-request-id') ?? '',
    status: response.status,
    type: response.headers.get('content-type') ?? '',
    tokens: endpoint === '/v1/embeddings' ? undefined : tokens,
  });
}

async function byCurl(sender: Sender, body: Body | string): Promise<ClientFacts> {
  const headers = Object.entries({ 'Content-Type': 'application/json', ...headersOf(sender) });
  const { stdout } = await run('curl', [
    '--silent',
    '--show-error',
    '--no-buffer',
    '--include',
    ...headers.flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
    '--data-binary',
    typeof body === 'string' ? body : JSON.stringify(body),
    `${sender.gateway.url}/v1/chat/completions`,
  ]);
  const end = stdout.indexOf('\r\n\r\n');
  const head = stdout.slice(0, end);
  const text = stdout.slice(end + 4);
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim() ?? '';
  return toBareFacts(sender, body, {
    requestId: field('x-request-id'),
    status: Number(head.split(' ')[1]),
    type: field('content-type'),
    text,
  });
}

async function byFetch(sender: Sender, body: Body | string): Promise<ClientFacts> {
  const response = await fetch(`${sender.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headersOf(sender) },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return toBareFacts(sender, body, {
    requestId: response.headers.get('x-request-id') ?? '',
    status: response.status,
    type: response.headers.get('content-type') ?? '',
    text: await response.text(),
  });
}

function toBareFacts(
  sender: Sender,
  body: Body | string,
  { text, ...seen }: { requestId: string; status: number; type: string; text: string },
): ClientFacts {
  return toFacts(sender, body, {
    ...seen,
    tokens: seen.status === 200 ? tokensIn(text, seen.type) : undefined,
  });
}

function tokensIn(text: string, type: string): number | undefined {
  if (!isEventStream(type)) return JSON.parse(text).usage.completion_tokens;
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']): Chunk => JSON.parse(json));
  return countTokens(events);
}

/** A simulated replica sends a token an event. */
function countTokens(chunks: readonly Chunk[]): number {
  return chunks.flatMap(({ choices }) => choices).filter(({ text, delta }) => Boolean(text ?? delta?.content))
    .length;
}

function toFacts(
  { clientRequestId, tenant }: Sender,
  body: Body | string,
  seen: { requestId: string; status: number; type: string; tokens: number | undefined },
): ClientFacts {
  const { requestId, status, type, tokens } = seen;
  const sent: Partial<Body> = typeof body === 'string' ? {} : body;
  const prompt = sent.messages?.[0]?.content ?? sent.prompt ?? sent.input;
  return {
    requestId,
    status,
    stream: isEventStream(type),
    endpoint: endpointOf(body),
    clientRequestId,
    tenant,
    ...(prompt === undefined ? {} : { promptChars: [...prompt].length }),
    ...(sent.max_tokens === undefined ? {} : { maxTokens: sent.max_tokens }),
    ...(tokens === undefined ? {} : { completionTokens: tokens }),
  };
}

function endpointOf(body: Body | string): ClientFacts['endpoint'] {
  if (typeof body === 'string' || body.messages !== undefined) return '/v1/chat/completions';
  return body.prompt === undefined ? '/v1/embeddings' : '/v1/completions';
}

const headersOf = ({ clientRequestId, tenant }: Sender) => ({
  'X-Request-Id': clientRequestId,
  'X-Tenant': tenant,
});

const isEventStream = (type: string) => type.startsWith('text/event-stream');
