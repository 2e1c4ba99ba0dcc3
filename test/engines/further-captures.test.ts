import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeReplica, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { type Capture, readCapture } from '#testkit/reading/captures.ts';
import { FORM_TYPE, formOf } from '#testkit/reading/form.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const FORM = formOf([
  { name: 'model', value: 'm' },
  { name: 'file', value: 'x', filename: 'a.wav' },
]);

/** Where the captures with a name that begins like this were made. */
const PATHS = {
  responses: '/v1/responses',
  'err-responses': '/v1/responses',
  messages: '/v1/messages',
  'messages-count-tokens': '/v1/messages/count_tokens',
  'err-messages': '/v1/messages',
  rerank: '/v1/rerank',
  'err-rerank': '/v1/rerank',
  tokenize: '/tokenize',
  detokenize: '/detokenize',
  'err-transcriptions': '/v1/audio/transcriptions',
} as const;

function pathOf(name: string): string | undefined {
  const starts = Object.keys(PATHS) as (keyof typeof PATHS)[];
  const longest = starts.filter((start) => name.startsWith(start)).toSorted((a, b) => b.length - a.length)[0];
  return longest && PATHS[longest];
}

const CAPTURES = ['llama', 'vllm'].flatMap((engine) =>
  readdirSync(new URL(`../fixtures/captures/${engine}`, import.meta.url))
    .map((file) => file.replace(/\.txt$/, ''))
    // A chat for a server without messages, not a request to /v1/messages.
    .filter((name) => name !== 'err-no-messages' && pathOf(name) !== undefined)
    .map((name) => `${engine}/${name}`),
);

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  const endpoints = ['responses', 'messages', 'rerank', 'tokenize', 'detokenize', 'audio/transcriptions'];
  gateway = await startGateway({ replicas: [replica], config: { endpoints } });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

const replay =
  ({ status, headers, chunks }: Capture): Script =>
  async ({ request, head, write, end }) => {
    await request.body;
    await head(status, headers);
    for (const chunk of chunks) await write(chunk);
    end();
  };

interface Told {
  readonly id?: string;
  readonly usage?: Record<string, number> & { readonly input_tokens_details?: Record<string, number> };
}

/** What the engine says of itself in an answer, found without the gateway's code: all events laid over one another. */
function toldBy({ body, headers }: Capture): Told {
  const isStream = headers.some((value) => value.startsWith('text/event-stream'));
  const texts = isStream
    ? [...body.toString().matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => data)
    : [body.toString()];
  let told: Told = {};
  for (const text of texts) {
    const value = JSON.parse(text) as Told & { message?: Told; response?: Told };
    for (const { id, usage } of [value, value.message ?? {}, value.response ?? {}]) {
      told = { ...told, ...(id && { id }), usage: { ...told.usage, ...usage } as NonNullable<Told['usage']> };
    }
  }
  return told;
}

test('there are captures of each endpoint, plain and streamed, with calls, and of errors', () => {
  for (const name of ['responses', 'responses-stream', 'responses-call', 'responses-call-stream']) {
    expect(CAPTURES).toContain(`llama/${name}`);
    expect(CAPTURES).toContain(`llama/${name.replace('responses', 'messages')}`);
  }
  for (const name of [
    'rerank',
    'tokenize',
    'detokenize',
    'messages-count-tokens',
    'err-responses-previous',
  ]) {
    expect(CAPTURES).toContain(`llama/${name}`);
  }
});

describe('a captured answer', () => {
  test.each(CAPTURES)(
    '%s reaches the client byte for byte, and its record has what the engine says',
    async (name) => {
      const capture = readCapture(name);
      const path = pathOf(name.slice(name.indexOf('/') + 1)) ?? '';
      replica.answerOnce(replay(capture));
      const isForm = path.startsWith('/v1/audio');
      const response = isForm
        ? await gateway.post(path, FORM, { headers: { 'Content-Type': FORM_TYPE } })
        : await gateway.post(path, { model: 'm' });
      expect(response.status).toBe(capture.status);
      expect(Buffer.from(await response.arrayBuffer()).equals(capture.body)).toBe(true);
      await replica.nextRequest();
      const record = await gateway.nextRecord();
      expect(record).toMatchObject({ endpoint: path, status: capture.status, replica: 'a' });
      expect(record).not.toHaveProperty('truncated');
      if (capture.status >= 400) {
        expect(record).not.toHaveProperty('prompt_tokens');
        return;
      }
      const { id, usage = {} } = toldBy(capture);
      const cached = usage.cache_read_input_tokens ?? usage.input_tokens_details?.cached_tokens;
      const isMessage = path === '/v1/messages';
      const uncached = usage.input_tokens ?? usage.prompt_tokens;
      const prompt = isMessage
        ? (uncached ?? 0) + (cached ?? 0) + (usage.cache_creation_input_tokens ?? 0)
        : uncached;
      expect({
        prompt: record.prompt_tokens,
        completion: record.completion_tokens,
        cached: record.cached_tokens,
        id: record.response_id,
      }).toEqual({ prompt, completion: usage.output_tokens, cached, id });
      if (record.stream) expect(record.ttft_ms).toBeGreaterThanOrEqual(0);
      if (name.includes('call')) expect(record.finish_reasons).toHaveLength(1);
    },
  );
});
