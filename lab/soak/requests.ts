/** A kind of request that clients send. */
export interface RequestKind {
  readonly name: string;
  readonly path: string;
  readonly json: Buffer;
  /** The statuses that are answers as they should be. */
  readonly statuses: readonly number[];
  /** Which API key it has where keys are needed. */
  readonly key: 'valid' | 'limited' | 'wrong';
  /** What the client does. `leaves`: with the first byte of the answer; `reads_slowly`: a long answer, in seconds. */
  readonly client: 'reads' | 'leaves' | 'reads_slowly';
  /** Whether its replica keeps the response, so that it can be asked for later. */
  readonly isStored: boolean;
  /** Whether its duration counts: the same request is then sent to a replica, too, at the same time. */
  readonly isTimed: boolean;
}

const TEXT = 'Tell me how a soak test goes. ';
const MESSAGES = [{ role: 'user', content: TEXT.repeat(20) }];
const LARGE_MESSAGES = [{ role: 'user', content: TEXT.repeat(4_000) }];
const CHAT = '/v1/chat/completions';
const MESSAGE = { max_tokens: 20, messages: MESSAGES };
/** Tokens of a stream that takes so long that a replica usually crashes in some. */
const LONG = 90;
const USUAL = {
  statuses: [200],
  key: 'valid',
  client: 'reads',
  isStored: false,
  isTimed: false,
} as const satisfies Partial<RequestKind>;

const toKind = (name: string, path: string, body: object, rest: Partial<RequestKind> = {}): RequestKind => ({
  name,
  path,
  json: Buffer.from(JSON.stringify({ model: 'm', ...body })),
  ...USUAL,
  ...rest,
});

/** What clients send, in turn. */
export const REQUEST_KINDS: readonly RequestKind[] = [
  toKind('chat', CHAT, { messages: MESSAGES }, { isTimed: true }),
  toKind('chat, stream', CHAT, { messages: MESSAGES, stream: true, max_tokens: LONG }),
  toKind('chat, stream with usage', CHAT, {
    messages: MESSAGES,
    stream: true,
    stream_options: { include_usage: true },
  }),
  toKind('completion, stream', '/v1/completions', { prompt: TEXT, stream: true, max_tokens: LONG }),
  toKind('response', '/v1/responses', { input: TEXT }, { isStored: true }),
  toKind('message, stream', '/v1/messages', { ...MESSAGE, stream: true }),
  toKind('embeddings', '/v1/embeddings', { input: [TEXT, TEXT] }),
  toKind('chat, client leaves', CHAT, { messages: MESSAGES, stream: true }, { client: 'leaves' }),
  toKind('large chat', CHAT, { messages: LARGE_MESSAGES }),
  toKind('chat, limited client', CHAT, { messages: MESSAGES }, { key: 'limited', statuses: [200, 429] }),
  toKind('unknown model', CHAT, { messages: MESSAGES, model: 'unknown' }, { statuses: [404] }),
  toKind('completion', '/v1/completions', { prompt: TEXT }),
  toKind('response, stream', '/v1/responses', { input: TEXT, stream: true }, { isStored: true }),
  toKind('chat of two', CHAT, { messages: MESSAGES, stream: true, n: 2 }),
  toKind('message', '/v1/messages', MESSAGE),
  toKind('count of tokens', '/v1/messages/count_tokens', { messages: MESSAGES }),
  toKind('wrong key', CHAT, { messages: MESSAGES }, { key: 'wrong', statuses: [401] }),
];

/** A long answer that its client reads slowly. */
export const SLOW_READER = toKind(
  'slow reader',
  CHAT,
  { messages: MESSAGES, stream: true, max_tokens: 200 },
  { client: 'reads_slowly' },
);

/** A request that continues a response which a replica keeps. */
export const toContinuation = (id: string): RequestKind =>
  toKind('continued response', '/v1/responses', { input: TEXT, previous_response_id: id });
