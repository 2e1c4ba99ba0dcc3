import { randomUUID } from 'node:crypto';
import { DONE, event } from '../../../src/simulate/dialects/dialect.ts';

/** What the soak's requests say. */
export interface Body {
  readonly model: string;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly n?: number;
  readonly max_tokens?: number;
  readonly previous_response_id?: string;
}

/** An answer, whole and as the events of a stream. */
export interface Answer {
  readonly whole: unknown;
  readonly firstEvent: string;
  readonly tokenEvents: readonly string[];
  readonly lastEvents: string;
  /** The id under which the replica keeps the response; null: it keeps none. */
  readonly storedId: string | null;
}

const TOKENS = 6;
/** From so many tokens on they are long, for clients that read slowly. */
const MANY_TOKENS = 100;
const LONG_TOKEN = 'a long token '.repeat(400);
const USAGE = { prompt_tokens: 9, completion_tokens: TOKENS, total_tokens: 9 + TOKENS };
const CREATED = 1_795_000_000;

/** The models of every replica. */
export function modelList(): unknown {
  return {
    object: 'list',
    data: [
      { id: 'm', object: 'model', created: CREATED, owned_by: 'vllm', root: 'm', max_model_len: 65_536 },
    ],
  };
}

/** An answer to embeddings of two texts. */
export function embeddingsFor({ model }: Body): unknown {
  const data = [0, 1].map((index) => ({ index, object: 'embedding', embedding: [0.25, -0.5, 1] }));
  return { id: 'embd-1', object: 'list', model, data, usage: { prompt_tokens: 9, total_tokens: 9 } };
}

/** The answer of an endpoint that generates; null: there is no such endpoint. */
export function answerTo(path: string, body: Body, replica: string): Answer | null {
  if (path === '/v1/chat/completions' || path === '/v1/completions') return toCompletion(path, body);
  if (path === '/v1/responses') return toResponse(body, replica);
  if (path === '/v1/messages') return toMessage(body);
  return null;
}

function toCompletion(path: string, { model, n = 1, max_tokens: count = TOKENS, ...body }: Body): Answer {
  const isChat = path === '/v1/chat/completions';
  const text = count >= MANY_TOKENS ? LONG_TOKEN : ' token';
  const head = { id: `cmpl-${randomUUID()}`, created: CREATED, model };
  const indexes = Array.from({ length: n }, (_, index) => index);
  const chunk = (content: string, finish: string | null) =>
    indexes.map((index) => ({
      index,
      finish_reason: finish,
      logprobs: null,
      ...(isChat ? { delta: { content } } : { text: content }),
    }));
  const chunkHead = { ...head, object: isChat ? 'chat.completion.chunk' : 'text_completion' };
  const usage = { ...USAGE, completion_tokens: n * count, total_tokens: 9 + n * count };
  const usageEvent = event({ ...chunkHead, choices: [], usage });
  const asksForUsage = body.stream_options?.include_usage === true;
  return {
    whole: {
      ...head,
      object: isChat ? 'chat.completion' : 'text_completion',
      usage,
      choices: indexes.map((index) => ({
        index,
        finish_reason: 'stop',
        ...(isChat ? { message: { role: 'assistant', content: text } } : { text }),
      })),
    },
    firstEvent: event({ ...chunkHead, choices: chunk('', null) }),
    tokenEvents: Array.from({ length: count }, () => event({ ...chunkHead, choices: chunk(text, null) })),
    lastEvents: `${event({ ...chunkHead, choices: chunk('', 'stop') })}${asksForUsage ? usageEvent : ''}${DONE}`,
    storedId: null,
  };
}

function toResponse({ model }: Body, replica: string): Answer {
  const id = `resp_${replica}_${randomUUID().replaceAll('-', '')}`;
  const head = { id, object: 'response', created_at: CREATED, model };
  const usage = { input_tokens: 9, output_tokens: TOKENS, total_tokens: 9 + TOKENS };
  const content = [{ type: 'output_text', text: 'tokens', annotations: [] }];
  const output = [{ type: 'message', role: 'assistant', content }];
  const whole = { ...head, status: 'completed', output, usage };
  return {
    whole,
    firstEvent: named('response.created', { response: { ...head, status: 'in_progress', output: [] } }),
    tokenEvents: Array.from({ length: TOKENS }, () =>
      named('response.output_text.delta', { delta: ' token', output_index: 0, content_index: 0 }),
    ),
    lastEvents: named('response.completed', { response: whole }),
    storedId: id,
  };
}

function toMessage({ model }: Body): Answer {
  const head = { id: `msg_${randomUUID()}`, type: 'message', role: 'assistant', model };
  const usage = { input_tokens: 9, output_tokens: TOKENS };
  const delta = { delta: { type: 'text_delta', text: ' token' }, index: 0 };
  return {
    whole: { ...head, content: [{ type: 'text', text: 'tokens' }], stop_reason: 'end_turn', usage },
    firstEvent:
      named('message_start', { message: { ...head, content: [], usage: { ...usage, output_tokens: 1 } } }) +
      named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    tokenEvents: Array.from({ length: TOKENS }, () => named('content_block_delta', delta)),
    lastEvents:
      named('content_block_stop', { index: 0 }) +
      named('message_delta', {
        delta: { stop_reason: 'end_turn' },
        usage: { output_tokens: TOKENS },
      }) +
      named('message_stop', {}),
    storedId: null,
  };
}

function named(type: string, data: object): string {
  return `event: ${type}\n${event({ type, ...data })}`;
}
