import { answerJson, answerStream, chatChunk, DONE, event, type Script } from '../fake-replica.ts';
import { CANARY } from './canary.ts';

/** The path of a passage that names none. */
export const CHAT = '/v1/chat/completions';

const streamed = (members: object) => JSON.stringify({ model: 'm', stream: true, ...members });
const message = { messages: [{ role: 'user', content: CANARY }] };

/** One way by which text passes through the gateway: a request, and what the replica does with it. */
export interface Passage {
  readonly name: string;
  readonly path?: string;
  readonly body: string;
  readonly fields?: readonly string[];
  readonly script?: Script;
}

const cut =
  (type: string): Script =>
  async ({ request, head, write, cut: close }) => {
    await request.body;
    await head(200, ['Content-Type', type]);
    await write(`data: {"choices":[{"delta":{"content":"${CANARY}`);
    close();
  };

/** Ways that need no other setting than the endpoints `responses`, `messages` and `audio/transcriptions`. */
export const PASSAGES: readonly Passage[] = [
  { name: 'a prompt', body: JSON.stringify({ model: 'm', ...message }) },
  { name: 'a prompt of completions', path: '/v1/completions', body: `{"model":"m","prompt":["${CANARY}"]}` },
  { name: 'an input of embeddings', path: '/v1/embeddings', body: `{"model":"m","input":"${CANARY}"}` },
  {
    name: 'a role, a name, a media URL',
    body: JSON.stringify({
      model: 'm',
      messages: [
        {
          role: CANARY,
          name: CANARY,
          content: [{ type: 'image_url', image_url: { url: `http://x/${CANARY}` } }],
        },
      ],
    }),
  },
  { name: 'tools', body: `{"model":"m","tools":[{"function":{"name":"${CANARY}"}}],"user":"${CANARY}"}` },
  { name: 'stream options', body: streamed({ stream_options: CANARY }) },
  { name: 'max_tokens', body: `{"model":"m","max_tokens":"${CANARY}"}` },
  { name: 'broken JSON', body: `{"model":"m","messages":"${CANARY}` },
  { name: 'a body that is no object', body: `"${CANARY}"` },
  { name: 'a model that is no string', body: `{"model":{"${CANARY}":1}}` },
  { name: 'a body that is too large', body: `{"model":"m","x":"${CANARY.repeat(1000)}"}` },
  { name: 'an encoded body', body: CANARY, fields: [`Content-Encoding: ${CANARY}`] },
  {
    name: 'header fields',
    body: '{"model":"m"}',
    fields: [
      `Authorization: Bearer ${CANARY}`,
      `Proxy-Authorization: Basic ${CANARY}`,
      `x-api-key: ${CANARY}`,
      `Cookie: ${CANARY}`,
      `Referer: http://x/${CANARY}`,
      `Forwarded: for=${CANARY}`,
      `Via: 1.1 ${CANARY}`,
      `X-Other: ${CANARY}`,
      `${CANARY}: 1`,
      `traceparent: ${CANARY}`,
      `tracestate: a=${CANARY}`,
      `baggage: a=${CANARY}`,
      `User-Agent: ${CANARY}`,
      `X-Forwarded-For: ${CANARY}`,
    ],
  },
  { name: 'a query', path: `${CHAT}?q=${CANARY}`, body: '{"model":"m"}' },
  {
    name: 'a message with tools and thoughts',
    path: '/v1/messages',
    body: JSON.stringify({
      model: 'm',
      stream: true,
      system: [{ type: 'text', text: CANARY }],
      metadata: { user_id: CANARY },
      messages: [
        { role: CANARY, content: [{ type: 'tool_use', name: CANARY, input: { [CANARY]: CANARY } }] },
        { role: 'user', content: [{ type: 'tool_result', content: [{ type: 'text', text: CANARY }] }] },
      ],
    }),
    script: answerStream([
      `event: ${CANARY}\ndata: {"type":"${CANARY}"}\n\n`,
      event({ type: 'message_start', message: { id: `${CANARY} x`, usage: { [CANARY]: 1 } } }),
      event({ type: 'content_block_delta', delta: { text: CANARY, thinking: CANARY, partial_json: CANARY } }),
      event({ type: 'message_delta', delta: { stop_reason: `${CANARY} x`, stop_sequence: CANARY } }),
      event({ type: 'error', error: { type: CANARY, message: CANARY } }),
    ]),
  },
  {
    name: 'the text of a count',
    path: '/v1/messages/count_tokens',
    body: JSON.stringify({ model: 'm', ...message }),
    script: answerJson({ input_tokens: 1, [CANARY]: CANARY }),
  },
  {
    name: 'a response with calls',
    path: '/v1/responses',
    body: JSON.stringify({
      model: 'm',
      instructions: CANARY,
      input: [
        { type: CANARY, arguments: CANARY },
        { type: 'function_call_output', output: CANARY },
        { role: 'user', content: [{ type: 'input_text', text: CANARY }, { image_url: CANARY }] },
      ],
      metadata: { other: CANARY },
    }),
    script: answerStream([
      event({ type: 'response.output_text.delta', delta: CANARY, item_id: CANARY }),
      event({ type: 'response.output_item.added', item: { name: CANARY } }),
      event({ type: `${CANARY}.delta`, delta: { [CANARY]: CANARY } }),
      event({
        type: 'response.incomplete',
        response: { id: `${CANARY} x`, status: `${CANARY} x`, output: [CANARY], instructions: CANARY },
      }),
    ]),
  },
  {
    name: 'a form with audio',
    path: '/v1/audio/transcriptions',
    body: [
      ...['--b', 'Content-Disposition: form-data; name="model"', '', 'm'],
      ...['--b', 'Content-Disposition: form-data; name="prompt"', '', CANARY],
      ...['--b', `Content-Disposition: form-data; name="${CANARY}"`, '', CANARY],
      ...['--b', `Content-Disposition: form-data; name="file"; filename="${CANARY}.wav"`, '', CANARY],
      ...['--b--', ''],
    ].join('\r\n'),
    fields: ['Content-Type: multipart/form-data; boundary=b'],
    script: answerStream([
      event({ type: 'transcript.text.delta', delta: CANARY }),
      event({ type: 'transcript.text.done', text: CANARY, usage: { type: CANARY, seconds: CANARY } }),
    ]),
  },
  {
    name: 'a form that cannot be read',
    path: '/v1/audio/transcriptions',
    body: `--b\r\nContent-Disposition: ${CANARY}\r\n\r\n${CANARY}`,
    fields: ['Content-Type: multipart/form-data; boundary=b'],
  },
  { name: 'an unknown path', path: `/v1/${CANARY}`, body: CANARY },
  {
    name: 'a completion',
    body: '{"model":"m"}',
    script: answerJson({
      id: `${CANARY} with spaces`,
      choices: [{ index: 0, message: { content: CANARY }, finish_reason: 'stop' }],
    }),
  },
  {
    name: 'finish reasons, usage keys and timings',
    body: '{"model":"m"}',
    script: answerJson({
      choices: [{ index: 0, finish_reason: `${CANARY} with spaces` }],
      usage: { [CANARY]: 1, prompt_tokens: CANARY },
      timings: { prompt_ms: CANARY },
    }),
  },
  {
    name: 'a streamed completion with tool arguments',
    body: streamed(message),
    script: answerStream([
      chatChunk(CANARY),
      event({ choices: [{ index: 0, delta: { tool_calls: [{ function: { arguments: CANARY } }] } }] }),
      `: ${CANARY}\n\n`,
      `data: ${CANARY}\n\n`,
      DONE,
    ]),
  },
  {
    name: 'an error event',
    body: streamed(message),
    script: answerStream([event({ error: { message: CANARY, type: CANARY, code: CANARY } }), DONE]),
  },
  {
    name: 'an error body',
    body: '{"model":"m"}',
    script: answerJson({ error: { message: CANARY } }, { status: 400 }),
  },
  {
    name: 'an error body about stream options',
    body: streamed(message),
    script: answerJson({ error: `stream_options ${CANARY}` }, { status: 400 }),
  },
  {
    name: 'header fields of a replica',
    body: '{"model":"m"}',
    script: answerJson({}, { fields: ['X-Reply', CANARY, 'Set-Cookie', CANARY, 'X-Request-Id', CANARY] }),
  },
  { name: 'a stream that is cut', body: streamed(message), script: cut('text/event-stream') },
  { name: 'a plain answer that is cut', body: streamed(message), script: cut('application/json') },
  {
    name: 'an answer that is not HTTP',
    body: '{"model":"m"}',
    script: async ({ request, raw, cut: close }) => {
      await request.body;
      await raw(`${CANARY}\r\n\r\n`);
      close();
    },
  },
  {
    name: 'a status line',
    body: '{"model":"m"}',
    script: async ({ request, raw, cut: close }) => {
      await request.body;
      await raw(`HTTP/1.1 200 ${CANARY}\r\nContent-Length: 0\r\n\r\n`);
      close();
    },
  },
];
