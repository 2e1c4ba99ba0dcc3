import { expect, test } from 'vitest';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

/** An engine that generates so many steps of each answer, and then waits until its client has left. */
function createPausingEngine() {
  let [allowed, taken] = [0, 0];
  return {
    allow(steps: number) {
      [allowed, taken] = [steps, 0];
    },
    now: () => 1_795_000_000_000,
    async sleep(_: number, signal: AbortSignal) {
      taken += 1;
      if (taken <= allowed) return;
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      if (signal.aborted) reject(signal.reason);
      await promise;
    },
  };
}

/** Reads a stream until so many tokens of text have come, and leaves it. */
async function leaveAfter(tokens: number, open: (signal: AbortSignal) => Promise<Response>): Promise<string> {
  const leaving = new AbortController();
  const response = await open(leaving.signal);
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if ((text.match(/"content":"[^"]/g) ?? []).length >= tokens) break;
  }
  leaving.abort();
  return text;
}

test.for([1, 3])(
  'streams that clients leave have the tokens that the engine has counted, to the token: vLLM, n = %i',
  async (n) => {
    const engine = createPausingEngine();
    await using replica = await startSimulatedReplica(
      { engine: 'vllm', tokens: 40, ttftMs: 10, gapMs: 10 },
      { now: engine.now, sleep: engine.sleep },
    );
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, engine: 'vllm' }],
      config: { progressive_usage: true },
    });
    const recorded: number[] = [];
    for (const steps of [1, 2, 5, 11, 3, 17]) {
      engine.allow(steps);
      const messages = [{ role: 'user', content: `Count to ${steps}, please` }];
      const text = await leaveAfter(steps * n, (signal) =>
        gateway.chat({ stream: true, n, messages, max_tokens: 40 }, { signal }),
      );
      expect(text).not.toContain('usage');
      const record = await gateway.nextRecord();
      expect(record).toMatchObject({ error_type: 'client_closed', usage_source: 'progressive' });
      recorded.push(record.completion_tokens ?? 0);
      const served = await replica.served.next();
      expect(served).toMatchObject({ ending: 'client_gone', generatedTokens: record.completion_tokens });
      expect(record.prompt_tokens).toBe(served.usage?.promptTokens);
    }
    expect(recorded).toEqual([1, 2, 5, 11, 3, 17].map((steps) => steps * n));
  },
);
