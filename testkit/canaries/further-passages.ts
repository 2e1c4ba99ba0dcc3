import { answerJson, answerStream, chatChunk, DONE, event, hang } from '../fake-replica.ts';
import { FORM_TYPE, formOf } from '../reading/form.ts';
import { CANARY } from './canary.ts';
import { CHAT, PASSAGES, type Passage } from './passages.ts';

/** A passage, the bytes of whose request may be any. */
export interface SentPassage {
  readonly name: string;
  readonly bytes: Buffer;
  readonly script?: Passage['script'];
  /**
   * When the client leaves, without reading an answer: when it has sent everything, when the request is at the replica,
   * or when it has this text of the answer.
   */
  readonly leaves?: 'sent' | 'forwarded' | { readonly at: string };
}

const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: CANARY }] });
const streamed = JSON.stringify({
  model: 'm',
  stream: true,
  messages: [{ role: 'user', content: CANARY }],
});
const tokens = event({ error: { message: CANARY } });

/** The bytes of a request; `lines` follow its Host. */
function request(start: string, lines: readonly string[] = [], body = ''): Buffer {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return Buffer.from(`${[start, 'Host: g', ...length, ...lines].join('\r\n')}\r\n\r\n${body}`, 'latin1');
}

const post = (path: string, body: string, lines: readonly string[] = []) =>
  request(`POST ${path} HTTP/1.1`, lines, body);
const chunkedPost = (body: string) => request(`POST ${CHAT} HTTP/1.1`, ['Transfer-Encoding: chunked']) + body;
const form = formOf([
  { name: 'file', filename: `${CANARY}.wav`, value: CANARY },
  { name: 'prompt', value: CANARY },
  { name: 'model', value: 'm' },
]).toString('latin1');
const raw =
  (bytes: string): NonNullable<Passage['script']> =>
  async ({ request: { body }, raw: write, cut }) => {
    await body;
    await write(bytes);
    cut();
  };

const FURTHER: readonly SentPassage[] = [
  ...['rerank', 'score', 'classify', 'pooling', 'tokenize', 'detokenize'].map((endpoint) => ({
    name: `texts of ${endpoint}`,
    bytes: post(
      ['tokenize', 'detokenize'].includes(endpoint) ? `/${endpoint}` : `/v1/${endpoint}`,
      JSON.stringify({ model: 'm', query: CANARY, documents: [CANARY], input: CANARY, prompt: CANARY }),
    ),
    script: answerJson({ results: [{ document: CANARY }], data: [CANARY], [CANARY]: CANARY }),
  })),
  { name: 'a prompt to an alias', bytes: post(CHAT, text.replace('"m"', '"nickname"')) },
  {
    name: 'a form whose file comes before its model',
    bytes: post('/v1/audio/translations', form, [`Content-Type: ${FORM_TYPE}`]),
    script: answerJson({ text: CANARY, segments: [{ text: CANARY }] }),
  },
  {
    name: 'a form that the client does not finish',
    bytes: post('/v1/audio/transcriptions', form, [`Content-Type: ${FORM_TYPE}`]).subarray(0, -30),
    leaves: 'sent',
  },
  { name: 'a passed path', bytes: post(`/v1/files/${CANARY}?k=${CANARY}`, CANARY) },
  { name: 'the id of a model', bytes: request(`GET /v1/models/${CANARY}?key=${CANARY} HTTP/1.1`) },
  { name: 'a listing', bytes: request(`GET /v1/models?key=${CANARY} HTTP/1.1`, [`Cookie: ${CANARY}`]) },
  {
    name: 'a target with credentials',
    bytes: request(`GET http://user:${CANARY}@g/v1/models HTTP/1.1`),
  },
  { name: 'a method', bytes: request(`${CANARY.toUpperCase()} /v1/models HTTP/1.1`) },
  {
    name: 'an upgrade',
    bytes: request('GET /v1/models HTTP/1.1', [`Upgrade: ${CANARY}`, 'Connection: upgrade']),
  },
  { name: 'a malformed field', bytes: post(CHAT, text, [`${CANARY} : ${CANARY}`]) },
  { name: 'a head that is too large', bytes: post(CHAT, text, [`X-A: ${CANARY.repeat(4000)}`]) },
  {
    name: 'extensions and trailer fields of chunks',
    bytes: Buffer.from(chunkedPost(`d;a=${CANARY}\r\n{"model":"m"}\r\n0\r\nX-A: ${CANARY}\r\n\r\n`)),
  },
  { name: 'a broken chunk', bytes: Buffer.from(chunkedPost(`${CANARY}\r\n${CANARY}\r\n`)) },
  { name: 'a client that leaves in its body', bytes: post(CHAT, text).subarray(0, -5), leaves: 'sent' },
  {
    name: 'a client that leaves before the answer',
    bytes: post(CHAT, text),
    script: hang,
    leaves: 'forwarded',
  },
  {
    name: 'a client that leaves a stream',
    bytes: post(CHAT, streamed),
    script: async ({ request: { body }, head, write }) => {
      await body;
      await head(200, ['Content-Type', 'text/event-stream']);
      await write(chatChunk(CANARY));
    },
    leaves: { at: CANARY },
  },
  {
    name: 'an answer for which the next replica is tried',
    bytes: post(CHAT, text),
    script: answerJson(
      { error: { message: CANARY, code: CANARY } },
      { status: 503, fields: ['X-A', CANARY] },
    ),
  },
  {
    name: 'a stream that fails in an event',
    bytes: post(CHAT, streamed),
    script: answerStream([chatChunk(CANARY), tokens, DONE]),
  },
  {
    name: 'fields of interim responses and a redirect',
    bytes: post(CHAT, text),
    script: raw(
      `HTTP/1.1 103 ${CANARY}\r\nLink: ${CANARY}\r\n\r\nHTTP/1.1 307 X\r\nLocation: http://x/${CANARY}\r\nContent-Length: 0\r\n\r\n`,
    ),
  },
  {
    name: 'broken chunks of a replica',
    bytes: post(CHAT, text),
    script: raw(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${CANARY}\r\n${CANARY}`),
  },
  {
    name: 'what follows an answer',
    bytes: post(CHAT, text),
    script: raw(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}${CANARY}`),
  },
];

/** All ways in which text passes. */
export const ALL_PASSAGES: readonly SentPassage[] = [
  ...PASSAGES.map(({ path = CHAT, body, fields, script, name }) => ({
    name,
    bytes: post(path, body, fields),
    ...(script === undefined ? {} : { script }),
  })),
  ...FURTHER,
];
