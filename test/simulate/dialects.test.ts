import { describe, expect, it } from 'vitest';
import type { SimulatedEngine } from '../../src/simulate/settings.ts';
import { eventsOf, startReplica } from './support.ts';

/** Checks what captures of real servers show: the order of members, and which event has which. */
async function streamOf(engine: SimulatedEngine, path: string, body: object): Promise<readonly unknown[]> {
  const { post } = await startReplica({ engine, tokens: 2 });
  const response = await post(path, { model: 'demo', stream: true, ...body });
  return eventsOf(await response.text());
}

const messages = [{ role: 'user', content: 'hi' }];
const include_usage = { stream_options: { include_usage: true } };

function membersOf(events: readonly unknown[]): readonly string[] {
  return events.map((event) => (typeof event === 'string' ? event : Object.keys(event as object).join(' ')));
}

describe('vLLM streams', () => {
  it('carry the fingerprint on the finishing chunk when no usage is asked for', async () => {
    const common = 'id object created model choices';
    expect(membersOf(await streamOf('vllm', '/v1/chat/completions', { messages }))).toEqual([
      `${common} prompt_token_ids prompt_text`,
      common,
      `${common} system_fingerprint`,
      '[DONE]',
    ]);
  });

  it('end in a usage chunk, which then has the fingerprint, with include_usage', async () => {
    const events = await streamOf('vllm', '/v1/chat/completions', { messages, ...include_usage });
    expect(events.at(-2)).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion.chunk',
      created: expect.any(Number),
      model: 'demo',
      choices: [],
      usage: {
        prompt_tokens: 3,
        total_tokens: 5,
        completion_tokens: 2,
        prompt_tokens_details: { cached_tokens: 0, created_cache_tokens: 0 },
      },
      system_fingerprint: 'vllm-simulated',
    });
    expect(membersOf(events).filter((members) => members.includes('system_fingerprint'))).toHaveLength(1);
  });

  it.each([{ include_usage: false }, {}, { continuous_usage_stats: true }])(
    'send no usage chunk for %j',
    async (stream_options) => {
      const events = await streamOf('vllm', '/v1/chat/completions', { messages, stream_options });
      expect(membersOf(events).filter((members) => members.includes('usage'))).toEqual([]);
    },
  );

  it('count as they go with continuous_usage_stats', async () => {
    const options = { stream_options: { include_usage: true, continuous_usage_stats: true } };
    const events = await streamOf('vllm', '/v1/chat/completions', { messages, ...options });
    const counted = events
      .slice(0, -1)
      .map((event) => (event as { usage: { completion_tokens: number } }).usage);
    expect(counted.map((usage) => usage.completion_tokens)).toEqual([0, 1, 2, 2]);
  });

  it('think in `reasoning` and count it', async () => {
    const body = { messages, reasoning_effort: 'medium', ...include_usage };
    const events = await streamOf('vllm', '/v1/chat/completions', body);
    expect(events[1]).toMatchObject({ choices: [{ delta: { reasoning: 'A' } }] });
    expect(events.at(-2)).toMatchObject({
      usage: { completion_tokens: 3, completion_tokens_details: { reasoning_tokens: 1 } },
    });
  });
});

describe('llama.cpp streams', () => {
  it('carry timings on the finishing chunk when no usage is asked for', async () => {
    const common = 'choices created id model system_fingerprint object';
    expect(membersOf(await streamOf('llamacpp', '/v1/chat/completions', { messages }))).toEqual([
      common,
      common,
      common,
      `${common} timings`,
      '[DONE]',
    ]);
  });

  it('end in one usage chunk per choice, with the timings', async () => {
    const events = await streamOf('llamacpp', '/v1/chat/completions', { messages, n: 2, ...include_usage });
    const withUsage = events.filter(
      (event) => typeof event === 'object' && event !== null && 'usage' in event,
    );
    expect(withUsage).toHaveLength(2);
    for (const event of withUsage) {
      expect(event).toMatchObject({
        choices: [],
        usage: { completion_tokens: 2, prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 0 } },
        timings: { cache_n: 0, prompt_n: 3, predicted_n: 2 },
      });
    }
  });

  it('of completions report usage on the finishing chunk, asked or not', async () => {
    const events = await streamOf('llamacpp', '/v1/completions', { prompt: 'hi' });
    expect(events.at(-2)).toMatchObject({
      choices: [{ text: '', finish_reason: 'stop' }],
      usage: { completion_tokens: 2, prompt_tokens: 1 },
    });
  });

  it('serve a model they do not have', async () => {
    const { post } = await startReplica({ engine: 'llamacpp' });
    const response = await post('/v1/chat/completions', { model: 'unknown', messages });
    expect(await response.json()).toMatchObject({ model: 'demo' });
  });
});

describe('OpenAI streams', () => {
  it('have a null usage on every other chunk when usage is asked for, and none otherwise', async () => {
    const asked = await streamOf('openai', '/v1/chat/completions', { messages, ...include_usage });
    const usages = asked.slice(0, -1).map((event) => (event as { usage?: unknown }).usage);
    expect(usages).toEqual([null, null, null, null, expect.objectContaining({ completion_tokens: 2 })]);
    const unasked = await streamOf('openai', '/v1/chat/completions', { messages });
    expect(membersOf(unasked).filter((members) => members.includes('usage'))).toEqual([]);
  });
});
