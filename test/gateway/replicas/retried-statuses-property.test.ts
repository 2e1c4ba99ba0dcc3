import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  answerJson,
  type FakeReplica,
  refusedUrlBeside,
  type Script,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { runs } from '#testkit/runs.ts';
import { startGateway } from '#testkit/start-gateway.ts';

/** What a replica does: it answers with a status, refuses the connection, or is drained. */
type Behaviour = 200 | 400 | 429 | 500 | 503 | 'refuses' | 'drained';

interface Expected {
  readonly status: number;
  /** Whose answer the client gets; undefined: the gateway's own. */
  readonly replica: string | undefined;
  readonly attempts: number | undefined;
  /** The replicas that got the request. */
  readonly asked: readonly string[];
}

const NAMES = ['a', 'b', 'c', 'd'] as const;
const bodyOf = (name: string, status: number) => `{"from":"${name}","status":${status}}`;

/** What the documentation promises, in the plainest words. */
function expectedOf(behaviours: readonly Behaviour[], statuses: readonly number[], limit: number): Expected {
  const asked: string[] = [];
  let attempts = 0;
  let retries = 0;
  let last: { readonly status: number; readonly replica: string } | null = null;
  for (const [i, behaviour] of behaviours.entries()) {
    const replica = NAMES[i] ?? '';
    if (behaviour === 'drained') continue;
    attempts++;
    if (behaviour === 'refuses') continue;
    asked.push(replica);
    last = { status: behaviour, replica };
    if (!statuses.includes(behaviour) || retries++ === limit) break;
  }
  if (last !== null) return { ...last, attempts, asked };
  const isAllDrained = attempts === 0;
  return {
    status: isAllDrained ? 503 : 502,
    replica: undefined,
    attempts: isAllDrained ? undefined : attempts,
    asked,
  };
}

const behaviour = fc.constantFrom<Behaviour>(200, 400, 429, 500, 503, 503, 'refuses', 'drained');
const setup = fc.record({
  behaviours: fc.array(behaviour, { minLength: 1, maxLength: NAMES.length }),
  statuses: fc.uniqueArray(fc.constantFrom(429, 500, 503)),
  attempts: fc.integer({ min: 1, max: 4 }),
});

test('whatever replicas answer, the client gets the answer that the rules name, and nothing stays in flight', async () => {
  await fc.assert(
    fc.asyncProperty(setup, async ({ behaviours, statuses, attempts }) => {
      await using replicas = await startFakeReplicas(...NAMES.slice(0, behaviours.length));
      const configured = behaviours.map((each, i) => {
        const replica = replicas[i] as FakeReplica;
        if (typeof each === 'number') {
          replica.answer(answerJson(bodyOf(replica.name, each), { status: each }));
        }
        return each === 'refuses' ? { name: replica.name, url: refusedUrlBeside(replica) } : replica;
      });
      await using gateway = await startGateway({
        replicas: configured,
        config: { retry: { statuses, attempts } },
      });
      for (const [i, each] of behaviours.entries()) {
        if (each !== 'drained') continue;
        await gateway.admin(`/admin/replicas/${NAMES[i]}/drain?force=true`, { method: 'POST' });
      }

      const response = await gateway.chat();
      const body = await response.text();

      const { asked, ...expected } = expectedOf(behaviours, statuses, attempts);
      expect(response.status).toBe(expected.status);
      if (expected.replica !== undefined) expect(body).toBe(bodyOf(expected.replica, expected.status));
      const record = await gateway.nextRecord();
      expect(record).toMatchObject({ status: expected.status });
      expect(record.attempts).toBe(expected.attempts);
      if (expected.replica !== undefined) expect(record.replica).toBe(expected.replica);
      expect(replicas.filter(({ requests }) => requests.length > 0).map(({ name }) => name)).toEqual(asked);
      expect((await gateway.replicas()).map(({ inflight }) => inflight)).toEqual(behaviours.map(() => 0));
    }),
    { numRuns: runs(40) },
  );
});

test('clients that leave at any moment, and a drain in the middle, leave nothing in flight', async () => {
  await using replicas = await startFakeReplicas('a', 'b', 'c');
  const refuse: Script = answerJson('{}', { status: 503 });
  for (const replica of replicas.slice(0, 2)) replica.answer(refuse);
  await using gateway = await startGateway({
    replicas: replicas.map(({ name, url }) => ({ name, url, max_inflight: 2 })),
    config: { retry: { statuses: [503], attempts: 2 } },
  });
  const count = 60;
  const clients = await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const client = await RawConnection.open(gateway.url);
      client.write(postBytes('/v1/chat/completions', '{"model":"m"}'));
      return { client, leaves: i % 3 === 0 };
    }),
  );
  await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });
  const answered = clients.map(async ({ client, leaves }) => {
    if (!leaves) expect((await client.readResponse()).status).toBe(200);
    client[Symbol.dispose]();
  });
  await Promise.all(answered);

  const records = await gateway.waitForRecords(count);
  expect(records.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual((count * 2) / 3);
  expect(new Set(records.map(({ status }) => status)).difference(new Set([200, 499]))).toEqual(new Set());
  expect(await gateway.replicas()).toMatchObject(replicas.map(() => ({ inflight: 0 })));
});
