import { describe, expect, test } from 'vitest';
import { hang, startFakeReplicas } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

const toLeast = { routing: { policy: 'least_inflight' } };
/** Blocks of 16 characters, so that short texts have prefixes. */
const toPrefix = { routing: { policy: 'prefix_affinity' }, prefix_hash: { block_chars: 16 } };

const ask = (content: string) => ({ messages: [{ role: 'user', content }] });

/** Requests that hang on these replicas until the test ends. */
async function occupy(gateway: StartedGateway, signal: AbortSignal, count: number): Promise<void> {
  for (let i = 0; i < count; i++) void gateway.chat({}, { signal }).catch(() => undefined);
}

describe('routing.policy: least_inflight', () => {
  test('sends each request where the fewest are in flight, and to the next in turn where they are as many', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    await using gateway = await startGateway({ replicas, config: toLeast });
    const leaving = new AbortController();
    const [a, b] = replicas;
    a?.answerOnce(hang);
    b?.answerOnce(hang);

    expect(await turnsOf(gateway, 0)).toEqual([]);
    await occupy(gateway, leaving.signal, 1);
    await a?.untilRequests(1);
    await occupy(gateway, leaving.signal, 1);
    await b?.untilRequests(1);

    expect(await turnsOf(gateway, 3)).toEqual(['c', 'c', 'c']);
    leaving.abort();
    await Promise.all([a?.requests[0]?.untilAborted(), b?.requests[0]?.untilAborted()]);
    await gateway.waitForRecords(5);
    expect((await turnsOf(gateway, 3)).toSorted()).toEqual(['a', 'b', 'c']);
  });

  test('leaves the model listing to turns', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas, config: toLeast });
    replicas[0]?.answerOnce(hang);
    const leaving = new AbortController();
    await occupy(gateway, leaving.signal, 1);
    await replicas[0]?.untilRequests(1);

    for (let i = 0; i < 4; i++) await (await fetch(`${gateway.url}/v1/models`)).arrayBuffer();

    const listings = replicas.map(
      ({ requests }) => requests.filter(({ url }) => url === '/v1/models').length,
    );
    expect(listings).toEqual([2, 2]);
    leaving.abort();
  });

  test('goes on to another replica when the one with the fewest is drained', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas, config: toLeast });
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });

    expect(await turnsOf(gateway, 2)).toEqual(['b', 'b']);
  });
});

describe('routing.policy: prefix_affinity', () => {
  const conversations = Array.from({ length: 20 }, (_, id) => `${id}: a conversation begins. `);

  test('sends what begins alike to one replica, and what begins differently to different ones', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c', 'd');
    await using gateway = await startGateway({ replicas, config: toPrefix });

    const owners = new Set<string | undefined>();
    for (const start of conversations) {
      const first = await turnsOf(gateway, 1, ask(start));
      expect(await turnsOf(gateway, 1, ask(`${start} And then more of it.`))).toEqual(first);
      expect(await turnsOf(gateway, 1, ask(`${start} And something else.`))).toEqual(first);
      owners.add(first[0]);
    }

    expect(owners.size).toBe(4);
  });

  test('finds the same replicas after a restart, and on any gateway with the same salt', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c', 'd');
    await using one = await startGateway({ replicas, config: toPrefix });
    await using other = await startGateway({ replicas: replicas.toReversed(), config: toPrefix });

    for (const start of conversations) {
      expect(await turnsOf(other, 1, ask(start))).toEqual(await turnsOf(one, 1, ask(start)));
    }
  });

  test('moves only what belongs to a drained replica, and moves it back', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c', 'd');
    await using gateway = await startGateway({ replicas, config: toPrefix });
    const ownersOf = async () => {
      const owners: (string | undefined)[] = [];
      for (const start of conversations) owners.push(...(await turnsOf(gateway, 1, ask(start))));
      return owners;
    };
    const before = await ownersOf();
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });

    const meanwhile = await ownersOf();

    expect(meanwhile).not.toContain('a');
    expect(meanwhile.filter((_, index) => before[index] !== 'a')).toEqual(
      before.filter((owner) => owner !== 'a'),
    );
    await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });
    expect(await ownersOf()).toEqual(before);
  });

  test('does not let one beginning load a replica with a quarter more than the mean', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    for (const replica of replicas) replica.answer(hang);
    await using gateway = await startGateway({ replicas, config: toPrefix });
    const leaving = new AbortController();

    for (let count = 1; count <= 8; count++) {
      void gateway.chat(ask('The same beginning again.'), { signal: leaving.signal }).catch(() => undefined);
      const arrived = () => replicas.reduce((sum, { requests }) => sum + requests.length, 0);
      await Promise.race(replicas.map(({ requests, untilRequests }) => untilRequests(requests.length + 1)));
      expect(arrived()).toBe(count);
      const most = Math.max(...replicas.map(({ requests }) => requests.length));
      expect(most).toBeLessThanOrEqual(Math.ceil((1.25 * count) / 2));
    }
    leaving.abort();
  });

  test('sends a text without a complete block where the fewest are in flight', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas, config: toPrefix });

    expect(await turnsOf(gateway, 4)).toEqual(['a', 'b', 'a', 'b']);
  });

  test('records the text as ever', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using byPrefix = await startGateway({ replicas, config: toPrefix });
    await using byTurns = await startGateway({ replicas, config: { prefix_hash: { block_chars: 16 } } });
    const [text] = conversations;

    await turnsOf(byPrefix, 1, ask(text ?? ''));
    await turnsOf(byTurns, 1, ask(text ?? ''));

    const [one] = byPrefix.records;
    const [other] = byTurns.records;
    expect(one?.prefix_hashes).toHaveLength(2);
    expect(one?.prefix_hashes).toEqual(other?.prefix_hashes);
    expect(one?.prompt_chars).toBe(other?.prompt_chars);
  });
});
