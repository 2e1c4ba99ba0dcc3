/** A request as a client sends it, and the answer of a replica. */
export interface Exchange {
  readonly request: Buffer;
  /** Which request it is, as the head that a replica gets still says. */
  readonly name: string;
  readonly answer: Buffer;
}

/** The model of all rehearsed requests. */
export const MODEL = 'rehearsal';
/** The header field with the name of an exchange. */
export const NAME_FIELD = 'x-rehearsal';

const PROMPT = 'The quick brown fox said "no" — twice.\n'.repeat(50);
const EVENTS = 16;
const USAGE = { prompt_tokens: 500, completion_tokens: EVENTS, total_tokens: 500 + EVENTS };
const COMMON = { id: 'chatcmpl-rehearsal', created: 1_700_000_000, model: MODEL };

/** What most fleets get: chats with JSON answers, and streams with and without the usage asked for. */
const EXCHANGES: readonly [Exchange, ...Exchange[]] = [
  toExchange('answer', {}, ['X-Tenant: rehearsal']),
  toExchange('stream', { stream: true }, ['Accept: text/event-stream']),
  toExchange('usage', { stream: true, stream_options: { include_usage: true } }, []),
  toExchange('key', { max_tokens: 40, temperature: 0.2 }, ['Authorization: Bearer rehearsal']),
];

/** The exchange with a name; undefined: none has it. */
export function findExchange(name: string | undefined): Exchange | undefined {
  return EXCHANGES.find((each) => each.name === name);
}

/** The exchanges in turn, again and again. */
export function exchangeOf(index: number): Exchange {
  return EXCHANGES[index % EXCHANGES.length] ?? EXCHANGES[0];
}

function toExchange(
  name: string,
  options: { readonly stream?: true; [key: string]: unknown },
  fields: string[],
) {
  const messages = [
    { role: 'system', content: 'You are helpful.' },
    { role: 'user', content: PROMPT },
  ];
  const body = JSON.stringify({ model: MODEL, ...options, messages });
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: rehearsal',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `${NAME_FIELD}: ${name}`,
    ...fields,
  ];
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
  return { request, name, answer: Buffer.from(options.stream === true ? toStream() : toAnswer()) };
}

function toAnswer(): string {
  const message = { role: 'assistant', content: 'lorem ipsum '.repeat(EVENTS) };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  const body = JSON.stringify({ object: 'chat.completion', ...COMMON, choices, usage: USAGE });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

function toStream(): string {
  const toEvent = (fields: object) =>
    `data: ${JSON.stringify({ object: 'chat.completion.chunk', ...COMMON, ...fields })}\n\n`;
  const events = Array.from({ length: EVENTS }, (_, index) => {
    const delta = { ...(index === 0 ? { role: 'assistant' } : {}), content: ` lorem ${index}` };
    return toEvent({ choices: [{ index: 0, delta, finish_reason: index === EVENTS - 1 ? 'stop' : null }] });
  });
  const pieces = [...events, toEvent({ choices: [], usage: USAGE }), 'data: [DONE]\n\n'];
  const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
  return `${head}${chunks.join('')}0\r\n\r\n`;
}
