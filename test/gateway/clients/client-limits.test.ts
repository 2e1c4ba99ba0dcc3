import { createHash } from 'node:crypto';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answerJson,
  answerStream,
  COMPLETION,
  chatChunk,
  type FakeReplica,
  hang,
  partial,
  resetAfterRequest,
  type Script,
  startFakeReplica,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { exchangeRaw, postBytes, RawConnection } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const keyOf = (name: string) => `key-of-${name}`;
const clientOf = (name: string, limits: object = {}) => ({
  name,
  key_sha256: createHash('sha256').update(keyOf(name)).digest('hex'),
  ...limits,
});
const withKey = (name: string) => ({ headers: { 'x-api-key': keyOf(name) } });

/** Each test of tokens has a client of its own. */
const THOUSAND = { tokens_per_minute: 1000 };
const CLIENTS = [
  clientOf('free'),
  clientOf('twice', { requests_per_minute: 2 }),
  clientOf('one-at-a-time', { max_inflight: 1 }),
  clientOf('all', { max_inflight: 100, requests_per_minute: 6, tokens_per_minute: 6000 }),
  ...['gone', 'gone-without-tokens'].map((name) => clientOf(name, { ...THOUSAND, max_inflight: 1 })),
  ...['used', 'broken-usage', 'broken', 'left', 'refused', 'failed', 'unread'].map((name) =>
    clientOf(name, THOUSAND),
  ),
];

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({
    replicas: [replica],
    config: { clients: CLIENTS, log: { requests: true } },
  });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

const openAiOf = (name: string, maxRetries: number) =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: keyOf(name), maxRetries });
const QUESTION = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] };

/** The rate limit fields of an answer, and Retry-After. */
const limitsIn = ({ headers }: { readonly headers: Headers }) =>
  Object.fromEntries([...headers].filter(([name]) => /^x-ratelimit-|^retry-after$/.test(name)));

describe('requests_per_minute', () => {
  test('is told with each answer, and over it the OpenAI client has its own error; it is recorded', async () => {
    const first = await gateway.chat({}, withKey('twice'));
    expect(limitsIn(first)).toMatchObject({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
    });
    await first.text();
    await (await gateway.chat({}, withKey('twice'))).text();
    const seen = replica.requests.length;

    const refused = await openAiOf('twice', 0)
      .chat.completions.create(QUESTION)
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
    const error = refused as InstanceType<typeof OpenAI.RateLimitError>;
    expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'requests', param: null });
    const retryAfter = error.headers?.get('retry-after');
    expect(error.message).toContain(
      `The client of the API key has reached its limit of requests per minute (2). There is room again in ${retryAfter} s.`,
    );
    const told = limitsIn({ headers: error.headers as Headers });
    expect(Object.keys(told).sort()).toEqual([
      'retry-after',
      'x-ratelimit-limit-requests',
      'x-ratelimit-remaining-requests',
      'x-ratelimit-reset-requests',
    ]);
    expect(Number(told['retry-after'])).toBeGreaterThan(0);
    expect(Number(told['retry-after'])).toBeLessThanOrEqual(30);
    expect(replica.requests).toHaveLength(seen);

    const records = await gateway.waitForRecords(3);
    expect(records.at(-1)).toMatchObject({
      status: 429,
      error_type: 'rate_limit_exceeded',
      client: 'twice',
      refused_by: 'client.requests_per_minute',
    });
    expect(records.filter(({ refused_by }) => refused_by !== undefined)).toHaveLength(1);
    const logged = gateway.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    expect(logged.map(({ status, refused_by }) => [status, refused_by])).toEqual([
      ...[
        [200, undefined],
        [200, undefined],
      ],
      [429, 'client.requests_per_minute'],
    ]);
    expect(await (await gateway.admin('/metrics')).text()).toContain('error_type="rate_limit_exceeded"');
  });

  test('does not count the list of models', async () => {
    for (let count = 0; count < 3; count++) {
      const listed = await fetch(`${gateway.url}/v1/models`, withKey('twice'));
      expect(listed.status).toBe(200);
      expect(limitsIn(listed)).toEqual({});
    }
  });
});

test('max_inflight: the OpenAI client comes back when Retry-After says so', async () => {
  const gate = createGate();
  const seen = replica.requests.length;
  replica.answerOnce(gate.script);
  const running = gateway.chat({}, withKey('one-at-a-time'));
  await replica.untilRequests(seen + 1);
  const recorded = gateway.records.length;

  const startedMs = performance.now();
  const asked = openAiOf('one-at-a-time', 1).chat.completions.create(QUESTION);
  const [refused] = (await gateway.waitForRecords(recorded + 1)).slice(recorded);
  expect(refused).toMatchObject({
    status: 429,
    error_type: 'rate_limit_exceeded',
    refused_by: 'client.max_inflight',
  });
  gate.open();
  expect((await running).status).toBe(200);
  expect((await asked).usage?.total_tokens).toBe(14);
  expect(performance.now() - startedMs).toBeGreaterThan(990);
});

describe('the fields of the limits', () => {
  const OWN = ['x-ratelimit-limit-requests', '7', 'X-RateLimit-Remaining-Tokens', '8', 'X-Other', '9'];

  test('are those of the gateway for a client with limits, in streams too', async () => {
    replica.answerOnce(answerStream([chatChunk('x', 'stop')], OWN));
    const response = await gateway.chat({ stream: true, max_tokens: 5000 }, withKey('all'));
    expect(response.headers.get('x-other')).toBe('9');
    expect(Object.keys(limitsIn(response))).toHaveLength(6);
    expect(limitsIn(response)).toMatchObject({
      'x-ratelimit-limit-requests': '6',
      'x-ratelimit-remaining-requests': '5',
      'x-ratelimit-reset-requests': expect.stringMatching(/^\d+(\.\d+)?s$/),
      'x-ratelimit-limit-tokens': '6000',
      'x-ratelimit-remaining-tokens': expect.stringMatching(/^[1-5]?\d{3}$/),
      'x-ratelimit-reset-tokens': expect.stringMatching(/^\d+(\.\d+)?s$/),
    });
    await response.text();
  });

  test('are on errors of the gateway, too', async () => {
    const response = await gateway.chat({ model: 'unknown' }, withKey('all'));
    expect(response.status).toBe(404);
    expect(Object.keys(limitsIn(response))).toHaveLength(6);
  });

  test('are those of the replica for a client without limits', async () => {
    replica.answerOnce(answerJson(COMPLETION, { fields: OWN }));
    const response = await gateway.chat({}, withKey('free'));
    expect(limitsIn(response)).toEqual({
      'x-ratelimit-limit-requests': '7',
      'x-ratelimit-remaining-tokens': '8',
    });
    await response.text();
  });
});

/** The differences are larger than what comes back while a test runs on a busy machine: 17 tokens per second. */
describe('tokens_per_minute', () => {
  const stream = (pieces: readonly string[]) => partial('text/event-stream', pieces, 'cut');
  const events = [chatChunk('a'), chatChunk('b'), chatChunk('c')];

  /** Whether a request that may use so many tokens is admitted. */
  async function admits(name: string, maxTokens: number): Promise<boolean> {
    const response = await gateway.chat({ max_tokens: maxTokens }, withKey(name));
    if (response.status === 429) {
      expect(await response.json()).toMatchObject({ error: { type: 'tokens', code: 'rate_limit_exceeded' } });
    } else {
      await response.text();
    }
    return response.status === 200;
  }

  async function send(name: string, script: Script, members: object = {}): Promise<void> {
    replica.answerOnce(script);
    await (await gateway.chat(members, withKey(name))).text().catch(() => '');
  }

  test('are charged by what the engine reported, whatever was reserved', async () => {
    expect(await admits('used', 999)).toBe(true);
    expect(await admits('used', 999)).toBe(false);
    expect(await admits('used', 900)).toBe(true);
  });

  test.each<[string, string, Script, object]>([
    ['what the engine had reported', 'broken-usage', stream([...events, usageChunk(400, 300)]), {}],
    [
      'the prompt and the events that came',
      'broken',
      stream(events),
      { messages: [{ role: 'user', content: 'x'.repeat(2800) }], max_tokens: 10 },
    ],
    [
      'the estimate, without usage',
      'unread',
      answerJson({ ...COMPLETION, usage: null }),
      { max_tokens: 700 },
    ],
  ])('are charged for an answer that says too little: %s', async (_, name, script, members) => {
    await send(name, script, { stream: true, ...members });
    expect(await admits(name, 600)).toBe(false);
    expect(await admits(name, 250)).toBe(true);
  });

  test('are charged as estimated when the client leaves before the answer', async () => {
    const leave = new AbortController();
    const seen = replica.requests.length;
    replica.answerOnce(hang);
    const left = gateway.chat({ max_tokens: 700 }, { ...withKey('left'), signal: leave.signal });
    await replica.untilRequests(seen + 1);
    const recorded = gateway.records.length;
    leave.abort();
    await expect(left).rejects.toThrow();
    await gateway.waitForRecords(recorded + 1);
    expect(await admits('left', 600)).toBe(false);
    expect(await admits('left', 250)).toBe(true);
  });

  test.each<[string, Script]>([
    ['refused', answerJson({ error: { message: 'no' } }, { status: 400 })],
    ['failed', resetAfterRequest],
  ])('are not charged for a request that the engine %s', async (name, script) => {
    await send(name, script, { max_tokens: 900 });
    expect(await admits(name, 900)).toBe(true);
  });
});

describe('a client that leaves while its large body is inspected', () => {
  /** It is read by a thread, which takes much longer than the end of the connection takes to arrive. */
  const stop_token_ids = Array.from({ length: 500_000 }, () => 0);
  const body = JSON.stringify({ ...QUESTION, max_tokens: 5000, stop_token_ids });

  async function leave(name: string): Promise<void> {
    using connection = await RawConnection.open(gateway.url);
    connection.write(postBytes('/v1/chat/completions', body, [`x-api-key: ${keyOf(name)}`]));
    connection.socket.end();
    expect(await connection.readToClose()).toHaveLength(0);
    // The thread reads one body after the other.
    await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', body, [`x-api-key: ${keyOf('free')}`]));
  }

  test('has used no tokens', async () => {
    await leave('gone');
    expect((await gateway.chat({ max_tokens: 5000 }, withKey('gone'))).status).toBe(200);
  });

  test('has no more room in max_inflight afterwards, also if its tokens are used up', async () => {
    replica.answerOnce(answerJson({ ...COMPLETION, usage: { prompt_tokens: 0, completion_tokens: 900 } }));
    await (await gateway.chat({}, withKey('gone-without-tokens'))).text();
    await leave('gone-without-tokens');
    const gate = createGate();
    const seen = replica.requests.length;
    replica.answerOnce(gate.script);
    const running = gateway.chat({}, withKey('gone-without-tokens'));
    await replica.untilRequests(seen + 1);
    const refused = await gateway.chat({}, withKey('gone-without-tokens'));
    gate.open();
    expect((await running).status).toBe(200);
    expect(refused.status).toBe(429);
  });
});

test('what a client has used counts on after a reload, as long as it has the name', async () => {
  await using other = await startGateway({
    replicas: [replica],
    config: { clients: [clientOf('a', { requests_per_minute: 1 })] },
  });
  const reload = async (clients: readonly object[]) => {
    other.writeConfig({ config: { clients } });
    expect((await other.reload()).status).toBe(200);
  };
  expect((await other.chat({}, withKey('a'))).status).toBe(200);
  const b = clientOf('b', { requests_per_minute: 1 });
  await reload([b, clientOf('a', { requests_per_minute: 1, feature: 'f' })]);
  expect((await other.chat({}, withKey('a'))).status).toBe(429);
  expect((await other.chat({}, withKey('b'))).status).toBe(200);
  await reload([b]);
  await reload([clientOf('a', { requests_per_minute: 1 })]);
  expect((await other.chat({}, withKey('a'))).status).toBe(429);
  await reload([clientOf('a')]);
  expect(limitsIn(await other.chat({}, withKey('a')))).toEqual({});
});
