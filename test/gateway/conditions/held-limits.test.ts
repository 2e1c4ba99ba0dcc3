import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { conditionsOf, untilOver } from '#testkit/conditions.ts';
import { answerStream, chatChunk, DONE, startFakeReplicas } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

test('a limit that silent streams hold, in two workers, is told with their replica, over a reload and the end of the replica, until they end', async () => {
  await using replicas = await startFakeReplicas('r3', 'r4');
  const [silent, good] = replicas;
  for (const each of replicas) each.answer(answerStream([chatChunk('x'), chatChunk('y', 'stop'), DONE]));
  const config = {
    gateway: { workers: 2 },
    clients: [{ name: 'web', tenant: 'acme', key_sha256: createHash('sha256').update('web').digest('hex') }],
    tenant_limits: { acme: { max_inflight: 6 } },
  };
  await using gateway = await startGateway({ replicas, config });
  const leaving = new AbortController();
  const send = async () => {
    const answer = await gateway.chat(
      { stream: true },
      { headers: { 'x-api-key': 'web' }, signal: leaving.signal },
    );
    await answer.text();
    return answer.status;
  };
  // What is usual is known from these.
  for (let each = 0; each < 24; each++) expect(await send()).toBe(200);
  silent.answer(async ({ request, head, write }) => {
    await request.body;
    await head(200, ['Content-Type', 'text/event-stream']);
    await write(chatChunk('x'));
  });
  const stalled: Promise<unknown>[] = [];
  const begin = () => stalled.push(send().catch(() => null));
  expect((await gateway.admin('/admin/replicas/r4/drain', { method: 'POST' })).status).toBe(200);
  for (let each = 0; each < 6; each++) begin();
  await silent.untilRequests(silent.requests.length + 6);
  const refuse = setInterval(begin, 300);
  const sentence = async () => (await conditionsOf(gateway, 'tenant_limit_reached'))[0]?.sentence;
  const atR3 = expect.stringMatching(
    /^acme is at its limit max_inflight of 6: \d+ requests refused in the last minute, 6 places are held by silent streams at r3$/,
  );
  await expect.poll(sentence).toEqual(atR3);
  const status = await (await gateway.admin('/admin/conditions')).json();
  expect(status).toMatchObject({
    conditions: expect.arrayContaining([
      expect.objectContaining({
        id: 'tenant_limit_reached',
        figures: expect.objectContaining({ silent: 6 }),
      }),
    ]),
  });

  gateway.writeConfig({ config: { ...config, timeouts: { upstream_keep_alive: '3s' } }, replicas: [good] });
  expect((await gateway.reload()).status).toBe(200);
  await expect.poll(() => conditionsOf(gateway, 'replica_streams_silent')).toEqual([]);
  expect(await sentence()).toEqual(atR3);
  clearInterval(refuse);
  leaving.abort();
  await Promise.all(stalled);
  await untilOver(gateway, 'tenant_limit_reached');
});
