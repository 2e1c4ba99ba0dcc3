import { Agent, get } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createSimulatedReplica } from '../../src/simulate/create-replica.ts';
import { SIMULATED_ENGINES } from '../../src/simulate/settings.ts';
import { startReplica, virtualTime } from './support.ts';

const messages = [{ role: 'user' as const, content: 'Say something about gateways, please.' }];

describe.each(SIMULATED_ENGINES)('a simulated %s', (engine) => {
  it('streams a chat with the usage that it reports as served', async () => {
    const { client, served } = await startReplica({ engine });
    const stream = await client.chat.completions.create({
      model: 'demo',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let usage: unknown;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    expect(text.split(' ')).toHaveLength(6);
    expect(usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 6, total_tokens: 18 });
    expect(served).toMatchObject([
      { ending: 'complete', status: 200, stream: true, usage: { promptTokens: 12, completionTokens: 6 } },
    ]);
  });

  it('answers a whole chat with the text, the limit and the choices of the request', async () => {
    const { client } = await startReplica({ engine });
    const answer = await client.chat.completions.create({
      model: 'demo',
      messages,
      n: 2,
      max_completion_tokens: 3,
    });
    expect(answer.choices.map((choice) => choice.index)).toEqual([0, 1]);
    expect(answer.choices.map((choice) => choice.finish_reason)).toEqual(['length', 'length']);
    expect(answer.choices.map((choice) => choice.message.content?.split(' ').length)).toEqual([3, 3]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 6 });
  });

  it('streams the call of a required tool, with arguments that fit its schema', async () => {
    const { client } = await startReplica({ engine });
    const properties = { city: { type: 'string' }, days: { type: 'integer' } };
    const parameters = { type: 'object', properties };
    const answer = await client.chat.completions
      .stream({
        model: 'demo',
        messages,
        tools: [{ type: 'function', function: { name: 'weather', parameters } }],
        tool_choice: 'required',
      })
      .finalChatCompletion();
    expect(answer.choices[0]?.finish_reason).toBe('tool_calls');
    const call = answer.choices[0]?.message.tool_calls?.[0];
    expect(call).toMatchObject({ type: 'function', function: { name: 'weather' } });
    const args: unknown = call?.type === 'function' ? JSON.parse(call.function.arguments) : null;
    expect(args).toEqual({ city: expect.any(String), days: expect.any(Number) });
  });

  it('completes each of several prompts, text or token ids', async () => {
    const { client } = await startReplica({ engine });
    const texts = await client.completions.create({
      model: 'demo',
      prompt: ['one', 'two'],
      n: 2,
      max_tokens: 2,
    });
    expect(texts.choices.map((choice) => choice.index)).toEqual([0, 1, 2, 3]);
    expect(texts.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 8 });
    const ids = await client.completions.create({ model: 'demo', prompt: [1, 2, 3], max_tokens: 2 });
    expect(ids.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 2 });
  });

  it('embeds equal inputs equally, as floats and in base64', async () => {
    const { client } = await startReplica({ engine });
    const input = ['a', 'b', 'a'];
    const floats = await client.embeddings.create({ model: 'demo', input, encoding_format: 'float' });
    // Without an encoding the client asks for base64 and decodes it.
    const decoded = await client.embeddings.create({ model: 'demo', input });
    expect(floats.data[0]?.embedding).toHaveLength(384);
    expect(floats.data[2]?.embedding).toEqual(floats.data[0]?.embedding);
    expect(floats.data[1]?.embedding).not.toEqual(floats.data[0]?.embedding);
    expect(decoded.data.map(({ embedding }) => embedding)).toEqual(
      floats.data.map(({ embedding }) => embedding),
    );
    expect(floats.usage).toMatchObject({ prompt_tokens: 3, total_tokens: 3 });
  });

  it('lists its models and is healthy', async () => {
    const { client, url } = await startReplica({ engine, models: ['demo', 'other'] });
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual(['demo', 'other']);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it.each([
    ['no JSON', '/v1/chat/completions', '{"messages":', 400],
    ['JSON that is no object', '/v1/chat/completions', '[]', 400],
    ['no messages', '/v1/chat/completions', { model: 'demo' }, 400],
    ['messages that are no list', '/v1/chat/completions', { model: 'demo', messages: 'hi' }, 400],
    ['a message that is no object', '/v1/chat/completions', { model: 'demo', messages: [null] }, 400],
    ['a limit of no tokens', '/v1/chat/completions', { model: 'demo', messages, max_tokens: 0 }, 400],
    ['too many choices', '/v1/chat/completions', { model: 'demo', messages, n: 1e6 }, 400],
    ['a prompt of objects', '/v1/completions', { model: 'demo', prompt: [{}] }, 400],
    ['too many choices over all prompts', '/v1/completions', { prompt: Array(100).fill('x'), n: 100 }, 400],
    ['no input', '/v1/embeddings', { model: 'demo' }, 400],
    ['too many dimensions', '/v1/embeddings', { model: 'demo', input: 'x', dimensions: 1e9 }, 400],
    ['a prompt beyond its context', '/v1/completions', { model: 'demo', prompt: 'x'.repeat(4000) }, 400],
    ['a body beyond its limit', '/v1/completions', { model: 'demo', prompt: 'x'.repeat(20_000) }, 413],
    ['an unknown path', '/v1/nothing', {}, 404],
  ])('refuses %s and goes on', async (_, path, body, status) => {
    const { post } = await startReplica({ engine, maxModelTokens: 1000, maxBodyBytes: 10_000 });
    const refused = await post(path, body);
    expect(refused.status).toBe(status);
    expect(await refused.json()).toBeTypeOf('object');
    const good = await post('/v1/chat/completions', { model: 'demo', messages });
    expect(good.status).toBe(200);
  });
});

describe('the pace', () => {
  it('keeps about the configured time to first token and gaps, and is the same for the same seed', async () => {
    const runMs = async (seed: number): Promise<number> => {
      const time = virtualTime();
      const { post } = await startReplica({ ttftMs: 80, gapMs: 20, tokens: 501, seed }, time);
      await (await post('/v1/chat/completions', { model: 'demo', messages, stream: true })).text();
      return time.elapsedMs();
    };
    const first = await runMs(7);
    expect(first).toBeGreaterThan(80 + 500 * 20 * 0.9);
    expect(first).toBeLessThan(80 + 500 * 20 * 1.1);
    expect(await runMs(7)).toBe(first);
    expect(await runMs(8)).not.toBe(first);
  });

  it('is the same for an answer that is not streamed', async () => {
    const time = virtualTime();
    const { client } = await startReplica({ ttftMs: 100, gapMs: 10, tokens: 101, seed: 1 }, time);
    await client.chat.completions.create({ model: 'demo', messages });
    expect(time.elapsedMs()).toBeGreaterThan(900);
    expect(time.elapsedMs()).toBeLessThan(1500);
  });

  it('sends the first token sooner when the prefix is cached', async () => {
    const time = virtualTime();
    const { client } = await startReplica({ ttftMs: 1000, tokens: 1 }, { ...time, random: () => 0.5 });
    const long = [{ role: 'user' as const, content: 'words '.repeat(500) }];
    await client.chat.completions.create({ model: 'demo', messages: long });
    const coldMs = time.elapsedMs();
    await client.chat.completions.create({ model: 'demo', messages: long });
    expect(time.elapsedMs() - coldMs).toBeLessThan(coldMs / 2);
  });
});

describe('cached tokens', () => {
  const chatOf = (content: string) => ({ model: 'demo', messages: [{ role: 'user' as const, content }] });
  const shared = 'You are a patient assistant. '.repeat(20);

  it('are whole blocks of the longest prefix seen before', async () => {
    const { client } = await startReplica();
    const cachedOf = async (content: string): Promise<number | undefined> => {
      const answer = await client.chat.completions.create(chatOf(content));
      return answer.usage?.prompt_tokens_details?.cached_tokens;
    };
    expect(await cachedOf(`${shared}first`)).toBe(0);
    expect(await cachedOf(`${shared}second`)).toBe(144);
    expect(await cachedOf(`Not so. ${shared}`)).toBe(0);
  });

  it('are forgotten, the oldest first, when there are too many', async () => {
    const { client, served } = await startReplica({ maxCachedBlocks: 12 });
    for (const content of [shared, 'other '.repeat(100), shared]) {
      await client.chat.completions.create(chatOf(content));
    }
    expect(served.map(({ usage }) => usage?.cachedTokens)).toEqual([0, 0, 0]);
  });
});

describe('a client that leaves', () => {
  /** A replica does not sleep for what is due already, as a few milliseconds are on a busy machine. */
  const AN_HOUR_MS = 3_600_000;

  /** Sleeps for ever, until the client has left. */
  const sleep = (_: number, signal: AbortSignal): Promise<void> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

  it('stops a stream after the tokens it has received', async () => {
    const { post, replica, nextServed } = await startReplica({ gapMs: AN_HOUR_MS }, { sleep });
    const gone = new AbortController();
    const response = await post(
      '/v1/chat/completions',
      { model: 'demo', messages, stream: true },
      { signal: gone.signal },
    );
    await response.body?.getReader().read();
    expect(replica.facts()).toMatchObject({ openRequests: 1, openStreams: 1, requestsServed: 0 });
    const served = nextServed();
    gone.abort();
    expect(await served).toMatchObject({ ending: 'client_gone', status: 200, generatedTokens: 1 });
    expect(replica.facts()).toMatchObject({
      openRequests: 0,
      openStreams: 0,
      clientsGone: 1,
      tokensGenerated: 1,
    });
  });

  it('stops an answer before its first byte', async () => {
    const asleep = Promise.withResolvers<void>();
    const { post, nextServed } = await startReplica(
      { ttftMs: AN_HOUR_MS },
      {
        sleep: (ms, signal) => {
          asleep.resolve();
          return sleep(ms, signal);
        },
      },
    );
    const gone = new AbortController();
    const served = nextServed();
    const response = post('/v1/chat/completions', { model: 'demo', messages }, { signal: gone.signal });
    await asleep.promise;
    gone.abort();
    await expect(response).rejects.toThrow();
    expect(await served).toMatchObject({ ending: 'client_gone', status: 0, generatedTokens: 0 });
  });

  it('stops a burst that it does not read', async () => {
    const { post, nextServed } = await startReplica();
    const gone = new AbortController();
    const body = { model: 'demo', messages, stream: true, max_tokens: 1_000_000, ignore_eos: true };
    await post('/v1/chat/completions', body, { signal: gone.signal });
    const served = nextServed();
    gone.abort();
    expect((await served).generatedTokens).toBeLessThan(1_000_000);
  });
});

describe('injected failures', () => {
  const chat = { model: 'demo', messages, stream: true };

  it('answer 500 instead of a stream', async () => {
    const { post, served } = await startReplica({ errorRate: 1, faults: ['status_500'] });
    const response = await post('/v1/chat/completions', chat);
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { type: 'InternalServerError', code: 500 } });
    expect(served).toMatchObject([{ ending: 'refused', status: 500 }]);
  });

  it('cut a stream after some of its tokens', async () => {
    const { post, served } = await startReplica({ errorRate: 1, faults: ['cut'] });
    const response = await post('/v1/chat/completions', chat);
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain('"content"');
    await expect(
      (async () => {
        while (!(await reader?.read())?.done);
      })(),
    ).rejects.toThrow();
    expect(served).toMatchObject([{ ending: 'cut', status: 200 }]);
  });

  it.each([
    ['vllm', /data: \{"error":\{.*\}\}\n\ndata: \[DONE\]\n\n$/],
    ['llamacpp', /data: \{"error":\{.*\}\}\n\n$/],
  ] as const)("end a stream of %s in the engine's error event", async (engine, ending) => {
    const { post, served } = await startReplica({ engine, errorRate: 1, faults: ['error_event'] });
    const text = await (await post('/v1/chat/completions', chat)).text();
    expect(text).toContain('"content"');
    expect(text).toMatch(ending);
    expect(served).toMatchObject([{ ending: 'error_event', status: 200 }]);
  });

  it('occur at the configured rate; embeddings and whole answers only get the 500', async () => {
    const { post, served } = await startReplica({ errorRate: 0.25 });
    for (let request = 0; request < 200; request += 1) {
      await (await post('/v1/embeddings', { model: 'demo', input: 'x', dimensions: 1 })).text();
    }
    const failed = served.filter(({ status }) => status === 500).length;
    expect(failed).toBeGreaterThan(30);
    expect(failed).toBeLessThan(70);
  });
});

describe('its life', () => {
  it('close() cuts what is open and frees the port, so that another can take it', async () => {
    const { post, replica, url, served } = await startReplica({ ttftMs: 3_600_000 });
    const open = post('/v1/chat/completions', { model: 'demo', messages, stream: true });
    const body = (await open).text();
    await Promise.all([replica.close(), expect(body).rejects.toThrow()]);
    expect(served).toMatchObject([{ ending: 'closed' }]);
    const next = createSimulatedReplica({ port: Number(new URL(url).port) });
    expect(await next.start()).toEqual({ url });
    await next.close();
  });

  it('start() on a taken port rejects with EADDRINUSE', async () => {
    const { url } = await startReplica();
    const other = createSimulatedReplica({ port: Number(new URL(url).port) });
    await expect(other.start()).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});

describe('connections', () => {
  it('carry no keep-alive hint with vllm, as with uvicorn', async () => {
    const { url } = await startReplica({ engine: 'vllm' });
    const { headers } = await fetch(`${url}/health`);
    expect(headers.get('keep-alive')).toBeNull();
    expect(headers.get('connection')).toBeNull();
  });

  it('end after 100 requests with llamacpp', async () => {
    const { url } = await startReplica({ engine: 'llamacpp' });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const connectionHeaders: (string | undefined)[] = [];
    for (let request = 0; request < 100; request += 1) {
      const { promise, resolve } = Promise.withResolvers<string | undefined>();
      get(`${url}/health`, { agent }, (response) => {
        response.resume().on('end', () => resolve(response.headers.connection));
      });
      connectionHeaders.push(await promise);
    }
    expect(connectionHeaders.slice(98)).toEqual(['keep-alive', 'close']);
    agent.destroy();
  });

  it('return the request id of the request', async () => {
    const { post, served } = await startReplica();
    const headers = {
      'X-Request-Id': 'abc-1',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    };
    const response = await post('/v1/chat/completions', { model: 'demo', messages }, { headers });
    expect(response.headers.get('x-request-id')).toBe('abc-1');
    expect(await response.json()).toMatchObject({ id: 'chatcmpl-abc-1' });
    expect(served).toMatchObject([{ requestId: 'abc-1', traceparent: headers.traceparent }]);
  });
});
