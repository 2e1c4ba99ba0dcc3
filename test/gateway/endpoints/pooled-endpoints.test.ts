import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerJson, type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const ALL = ['rerank', 'score', 'classify', 'pooling', 'tokenize', 'detokenize'];
const PREFIX_HASH = { block_chars: 4 };
const RERANK = { query: 'ab', documents: ['cdef', 'é😀'] };
const RESULTS = [{ index: 0, relevance_score: 0.9 }];
const USAGE = { prompt_tokens: 9, total_tokens: 9 };

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica({ name: 'a' });
  gateway = await startGateway({
    replicas: [replica],
    config: { endpoints: ALL, prefix_hash: PREFIX_HASH, log: { requests: true } },
  });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

/** The record of a request, and what the client and the replica got. */
async function record(path: string, body: object, answer: unknown) {
  replica.answerOnce(answerJson(answer));
  const sent = JSON.stringify(body);
  const response = await gateway.post(path, sent);
  const [received, made] = await Promise.all([replica.nextRequest(), gateway.nextRecord()]);
  expect(await response.text()).toBe(JSON.stringify(answer));
  expect((await received.body).toString()).toBe(sent);
  expect(received.url).toBe(path);
  return made;
}

describe('without endpoints in the configuration', () => {
  test.each([
    '/rerank',
    '/v1/rerank',
    '/v2/rerank',
    '/reranking',
    '/v1/reranking',
    '/score',
    '/v1/score',
    '/classify',
    '/v1/classify',
    '/pooling',
    '/tokenize',
    '/v1/tokenize',
    '/detokenize',
    '/v1/detokenize',
  ])('POST %s is 404 and leaves no record; with them it is recorded under its path', async (path) => {
    await using plain = await startGateway({ replicas: [replica] });
    const seen = replica.requests.length;
    const response = await plain.post(path, { model: 'm', ...RERANK });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: 'not_found' } });
    expect(replica.requests).toHaveLength(seen);
    expect(await plain.stats()).toMatchObject({ recorded: 0 });

    expect(await record(path, { model: 'm' }, {})).toMatchObject({ endpoint: path, model: 'm', status: 200 });
  });

  test('only POST is relayed with them', async () => {
    expect((await fetch(`${gateway.url}/v1/rerank`)).status).toBe(404);
    expect((await fetch(`${gateway.url}/tokenize`, { method: 'PUT', body: '{}' })).status).toBe(404);
  });
});

describe('the record of a reranking', () => {
  test.each<[string, string, object, unknown, object]>([
    [
      'vLLM',
      '/v2/rerank',
      RERANK,
      { id: 'rerank-1', model: 'm', usage: USAGE, results: RESULTS },
      { prompt_tokens: 9, response_id: 'rerank-1', response_model: 'm', prompt_chars: 8 },
    ],
    [
      'vLLM 0.8, Jina: only the total',
      '/rerank',
      RERANK,
      { id: 'rerank-2', model: 'm', usage: { total_tokens: 56 }, results: RESULTS },
      { prompt_tokens: 56, prompt_chars: 8 },
    ],
    [
      'llama.cpp',
      '/v1/reranking',
      { ...RERANK, top_n: 1 },
      { model: 'm', object: 'list', usage: USAGE, results: RESULTS },
      { prompt_tokens: 9, prompt_chars: 8 },
    ],
    [
      'llama.cpp in the format of text-embeddings-inference',
      '/rerank',
      { query: 'ab', texts: ['c', 'd'] },
      [{ index: 0, score: 0.4 }],
      { prompt_chars: 4 },
    ],
    [
      'SGLang, parts',
      '/v1/rerank',
      {
        query: [{ type: 'text', text: 'ab' }],
        documents: ['c', [{ type: 'image_url', image_url: {} }, 'd']],
      },
      [{ score: 0.4, document: 'c', index: 0, meta_info: { prompt_tokens: 3 } }],
      { prompt_chars: 4 },
    ],
    [
      'vLLM, media',
      '/rerank',
      { query: 'ab', documents: { content: [{ type: 'text', text: 'c' }, { type: 'image_url' }] } },
      { results: [] },
      { prompt_chars: 3 },
    ],
    [
      'the format of Cohere',
      '/v2/rerank',
      { query: 'ab', documents: [{ text: 'c' }] },
      {
        id: 'c1',
        results: RESULTS,
        meta: { billed_units: { search_units: 1 }, tokens: { input_tokens: 7 } },
      },
      { prompt_tokens: 7, response_id: 'c1', prompt_chars: 3 },
    ],
    [
      'billed tokens',
      '/v2/rerank',
      RERANK,
      { meta: { billed_units: { input_tokens: 5, search_units: 1 } } },
      { prompt_tokens: 5 },
    ],
  ])('%s', async (_, path, body, answer, expected) => {
    const found = await record(path, { model: 'm', ...body }, answer);
    expect(found).toMatchObject({ endpoint: path, model: 'm', stream: false, replica: 'a', ...expected });
    expect(found).not.toHaveProperty('prefix_hashes');
    if (!('prompt_tokens' in expected)) expect(found).not.toHaveProperty('prompt_tokens');
  });

  test.each<[string, object]>([
    ['fields of its own', { query: 'ab', documents: [{ title: 'c' }] }],
    ['token ids', { query: 'ab', documents: [[1, 2]] }],
    ['a number', { query: 7, documents: ['c'] }],
    ['nothing', {}],
  ])('has no prompt_chars if a text is %s', async (_, body) => {
    const found = await record('/rerank', { model: 'm', ...body }, { usage: USAGE });
    expect(found).toMatchObject({ prompt_tokens: 9 });
    expect(found).not.toHaveProperty('prompt_chars');
  });

  test('is as true of a large body, which another thread reads', async () => {
    const documents = Array.from({ length: 20_000 }, (_, index) =>
      index % 2 === 0 ? 'é'.repeat(10) : { text: 'ab' },
    );
    const found = await record('/rerank', { model: 'm', query: 'q', documents }, { usage: USAGE });
    expect(found).toMatchObject({ prompt_chars: 1 + 10_000 * 10 + 10_000 * 2, prompt_tokens: 9 });
    expect(found).not.toHaveProperty('prefix_hashes');
  });

  test.each<[string, string]>([
    ['deep lists', `{"model":"m","query":"q","documents":${'['.repeat(500)}"x"${']'.repeat(500)}}`],
    ['deep objects', `{"model":"m","query":${'{"content":'.repeat(500)}"x"${'}'.repeat(500)}}`],
    [
      'a lone surrogate and __proto__',
      '{"model":"m","__proto__":{"query":"x"},"query":"\\ud800","documents":[]}',
    ],
    ['members twice', '{"model":"x","query":7,"query":"q","model":"m","documents":[1],"documents":["d"]}'],
  ])('is made of a body with %s, whose bytes the replica gets', async (_, body) => {
    replica.answerOnce(answerJson({ usage: USAGE }));
    expect((await gateway.post('/rerank', body)).status).toBe(200);
    const [received, made] = await Promise.all([replica.nextRequest(), gateway.nextRecord()]);
    expect((await received.body).toString()).toBe(body);
    expect(made).toMatchObject({ model: 'm', prompt_tokens: 9, status: 200 });
  });

  test.each<[string, unknown]>([
    ['search units alone', { meta: { billed_units: { search_units: 1 } } }],
    ['figures that are none', { usage: { prompt_tokens: -1, total_tokens: 'x' }, meta: { tokens: [] } }],
    ['members of __proto__', { usage: { __proto__: null }, meta: 5 }],
    ['no object', [1, 'usage']],
  ])('has no prompt_tokens if the answer has %s', async (_, answer) => {
    expect(await record('/rerank', { model: 'm', ...RERANK }, answer)).not.toHaveProperty('prompt_tokens');
  });
});

describe('the record of', () => {
  test.each<[string, string, object, unknown, object]>([
    [
      'a score of vLLM',
      '/score',
      { text_1: 'ab', text_2: ['c', 'd'] },
      { usage: USAGE },
      { prompt_chars: 4, prompt_tokens: 9 },
    ],
    [
      'a score of SGLang',
      '/v1/score',
      { query: 'ab', items: ['cd'] },
      { scores: [], usage: USAGE },
      { prompt_chars: 4 },
    ],
    [
      'a score of queries',
      '/v1/score',
      { queries: ['a'], documents: ['bc'] },
      { usage: USAGE },
      { prompt_chars: 3 },
    ],
    [
      'tokens of vLLM',
      '/tokenize',
      { prompt: 'abcdefgh' },
      { count: 3, tokens: [1, 2, 3] },
      { prompt_chars: 8 },
    ],
    ['tokens of SGLang', '/v1/tokenize', { prompt: ['abcd', 'e'] }, { count: [1, 1] }, { prompt_chars: 5 }],
    ['tokens of llama.cpp', '/tokenize', { content: 'abcdefgh' }, { tokens: [1] }, { prompt_chars: 8 }],
    ['tokens of TGI', '/tokenize', { inputs: 'abcdefgh' }, [{ id: 1, text: 'a' }], { prompt_chars: 8 }],
    [
      'tokens of a chat',
      '/tokenize',
      { messages: [{ role: 'user', content: 'abcdefgh' }] },
      { count: 3 },
      { prompt_chars: 8 },
    ],
  ])('%s has no hashes', async (_, path, body, answer, expected) => {
    const found = await record(path, { model: 'm', ...body }, answer);
    expect(found).toMatchObject(expected);
    expect(found).not.toHaveProperty('prefix_hashes');
    if (!('usage' in (answer as object))) expect(found).not.toHaveProperty('prompt_tokens');
  });

  test.each(['/classify', '/v1/classify', '/pooling'])(
    '%s has the hashes of embeddings and of chats',
    async (path) => {
      const messages = [{ role: 'user', content: 'abcdefgh' }];
      const embedded = await record('/v1/embeddings', { model: 'm', input: ['abcde', 'fgh'] }, {});
      const pooled = await record(path, { model: 'm', input: ['abcde', 'fgh'] }, { id: 'p', usage: USAGE });
      expect(pooled).toMatchObject({ prompt_chars: 8, prompt_tokens: 9, response_id: 'p' });
      expect(pooled.prefix_hashes).toHaveLength(2);
      expect(pooled.prefix_hashes).toEqual(embedded.prefix_hashes);
      const chatted = await record('/v1/chat/completions', { model: 'm', messages }, {});
      const asked = await record(path, { model: 'm', messages }, {});
      expect(asked.prefix_hashes).toEqual(chatted.prefix_hashes);
      const ids = await record(path, { model: 'm', input: [1, 2, 3] }, {});
      expect(ids).not.toHaveProperty('prompt_chars');
    },
  );

  test('detokenization has no text, and none of its answer', async () => {
    const found = await record(
      '/detokenize',
      { model: 'm', tokens: [1, 2] },
      { prompt: 'canary-text', content: 'canary-text' },
    );
    expect(found).not.toHaveProperty('prompt_chars');
    expect(JSON.stringify(found)).not.toContain('canary');
  });

  test('an error of the replica is its status, and its answer is relayed', async () => {
    replica.answerOnce(answerJson({ error: { message: 'no reranker' } }, { status: 501 }));
    const response = await gateway.post('/rerank', { model: 'm', ...RERANK });
    expect(response.status).toBe(501);
    expect(await response.json()).toEqual({ error: { message: 'no reranker' } });
    await replica.nextRequest();
    expect(await gateway.nextRecord()).toMatchObject({ status: 501, prompt_chars: 8 });
  });

  test.each([
    ['no object', '[]', 400, 'invalid_json'],
    ['broken JSON', '{"query":', 400, 'invalid_json'],
    ['another model', '{"model":"other"}', 404, 'model_not_found'],
  ])('a body that is %s is the error of the gateway', async (_, body, status, code) => {
    const response = await gateway.post('/rerank', body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
    expect(await gateway.nextRecord()).toMatchObject({ status, error_type: code, endpoint: '/rerank' });
  });
});
