import { describe, expect, it } from 'vitest';
import { type Started, startReplica, virtualTime } from './support.ts';

const CHAT = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }] };

const play = ({ url }: Started, scene: string) => fetch(`${url}/simulate/scene/${scene}`, { method: 'POST' });
const chat = ({ post }: Started, stream = false) => post('/v1/chat/completions', { ...CHAT, stream });

describe('a running simulated replica', () => {
  it('plays a scene until the next one, by a path that no engine has', async () => {
    const replica = await startReplica({ name: 'gpu-1' });
    expect(await (await play(replica, 'failing')).json()).toEqual({ name: 'gpu-1', scene: 'failing' });
    expect((await chat(replica)).status).toBe(500);
    await play(replica, 'normal');
    expect((await chat(replica)).status).toBe(200);
    expect((await play(replica, 'sleepy')).status).toBe(404);
    expect((await fetch(`${replica.url}/simulate/scene/slow`)).status).toBe(404);
  });

  it('is slow: every time grows', async () => {
    const time = virtualTime();
    const replica = await startReplica({ ttftMs: 100, gapMs: 10, tokens: 20 }, { ...time, random: () => 0 });
    await (await chat(replica)).text();
    const normalMs = time.elapsedMs();
    replica.replica.play('slow');
    await (await chat(replica)).text();
    expect(time.elapsedMs() - normalMs).toBeCloseTo(0.8 * (100 * 8 + 19 * 10 * 4), 0);
  });

  it.each([true, false])('fails every request (stream: %s), and no probe', async (stream) => {
    const replica = await startReplica();
    replica.replica.play('failing');
    for (let index = 0; index < 10; index += 1) {
      const text = await chat(replica, stream)
        .then((response) => response.text())
        .catch(() => 'cut');
      expect(text === 'cut' || text.includes('error') || !text.includes('[DONE]')).toBe(true);
    }
    expect((await fetch(`${replica.url}/health`)).status).toBe(200);
  });

  it('freezes: what runs and what comes waits, probes are answered, and all goes on when it thaws', async () => {
    const replica = await startReplica();
    replica.replica.play('frozen');
    const [first, second] = [await chat(replica, true), chat(replica)];
    expect(first.status).toBe(200);
    expect((await fetch(`${replica.url}/health`)).status).toBe(200);
    await expect.poll(() => replica.replica.facts().openRequests).toBe(2);
    expect(replica.replica.facts().tokensGenerated).toBe(0);
    replica.replica.play('normal');
    expect(await first.text()).toContain('[DONE]');
    expect((await second).status).toBe(200);
  });

  it('lets a client leave while it is frozen', async () => {
    const replica = await startReplica();
    replica.replica.play('frozen');
    const leaving = new AbortController();
    const response = await replica.post(
      '/v1/chat/completions',
      { ...CHAT, stream: true },
      { signal: leaving.signal },
    );
    leaving.abort();
    await expect(response.text()).rejects.toThrow();
    await expect.poll(() => replica.replica.facts().clientsGone).toBe(1);
  });

  it.each(['vllm', 'llamacpp', 'openai'] as const)(
    'loads its model: %s answers everything with 503',
    async (engine) => {
      const replica = await startReplica({ engine });
      replica.replica.play('loading');
      for (const path of ['/health', '/v1/models']) {
        const response = await fetch(replica.url + path);
        expect(response.status, path).toBe(503);
        expect(await response.text(), path).toContain('Loading model');
      }
      expect((await chat(replica)).status).toBe(503);
    },
  );
});
