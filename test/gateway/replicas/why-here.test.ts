import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { answerJson, refusedUrlBeside, startFakeReplica, startFakeReplicas } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const answer = (cached: number) =>
  answerJson({
    id: 'r',
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 40, completion_tokens: 1, prompt_tokens_details: { cached_tokens: cached } },
  });

describe('a record says why its replica was chosen', () => {
  test('in turn, and after another has refused the connection', async () => {
    await using a = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: a.url },
        { name: 'gone', url: refusedUrlBeside(a) },
      ],
    });
    await gateway.chat();
    await gateway.chat();
    const [first, second] = await gateway.waitForRecords(2);
    expect(first).toMatchObject({ replica: 'a', route_reason: 'turn' });
    expect(second).toMatchObject({
      replica: 'a',
      attempts: 2,
      route_reason: 'next_after_failure',
      route_candidates: 1,
      route_ruled_out: { tried: 1 },
    });
    const { records } = (await (await gateway.admin('/admin/records')).json()) as { records: object[] };
    expect(records[0]).toMatchObject({ route_reason: 'next_after_failure', route_ruled_out: { tried: 1 } });
  });

  test('by its prefix, and why the engine had not cached that', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({
      replicas,
      config: { routing: { policy: 'prefix_affinity' }, prefix_hash: { block_chars: 16 } },
    });
    for (const replica of replicas) replica.answer(answer(0));
    const messages = [{ role: 'user', content: 'what a long prefix this is'.padEnd(32, '.') }];
    for (let count = 0; count < 2; count++) await gateway.chat({ messages });
    const [unseen, evicted] = await gateway.waitForRecords(2);
    expect(unseen).toMatchObject({
      route_reason: 'prefix',
      route_prefix_blocks: 1,
      route_prefix_share: 1,
      route_prefix_miss: 'never_seen',
    });
    expect(evicted).toMatchObject({ replica: unseen?.replica, route_prefix_miss: 'evicted_or_restarted' });
    await gateway.admin(`/admin/replicas/${unseen?.replica}/drain`, { method: 'POST' });
    await gateway.chat({ messages });
    const [, , moved] = await gateway.waitForRecords(3);
    expect(moved).toMatchObject({ route_reason: 'only_candidate', route_prefix_miss: 'elsewhere' });
    for (const replica of replicas) replica.answer(answer(32));
    await gateway.chat({ messages });
    const [, , , hit] = await gateway.waitForRecords(4);
    expect(hit).not.toHaveProperty('route_prefix_miss');
  });
});

describe('routing.tell: trusted', () => {
  /** The fields of the answer to a chat from a local address, and its record's replica. */
  async function fieldsFor(url: string, localAddress: string) {
    const options = { method: 'POST', localAddress, agent: false as const };
    const sent = request(`${url}/v1/chat/completions`, options);
    sent.end(JSON.stringify({ model: 'm', messages: [] }));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    const { 'x-gateway-replica': replica, 'x-gateway-route-reason': reason } = response.headers;
    return { replica, reason };
  }

  test('tells the clients of trusted_proxies, and nobody else; a replica cannot say it instead', async () => {
    await using replica = await startFakeReplica();
    replica.answer(
      answerJson({}, { fields: ['X-Gateway-Replica', 'forged', 'X-Gateway-Route-Reason', 'forged'] }),
    );
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url }],
      config: { gateway: { trusted_proxies: ['127.0.0.1'] }, routing: { tell: 'trusted' } },
    });
    expect(await fieldsFor(gateway.url, '127.0.0.1')).toEqual({ replica: 'a', reason: 'only_candidate' });
    expect(await fieldsFor(gateway.url, '127.0.0.2')).toEqual({ replica: 'forged', reason: 'forged' });
  });
});
