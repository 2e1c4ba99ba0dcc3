import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import {
  answerJson,
  COMPLETION,
  type FakeReplica,
  type ReplicaExchange,
  refusedUrlBeside,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

/** A replica that answers when the test says so, and tells by the header X-Feature who asked. */
interface HeldReplica extends FakeReplica {
  /** Who asked, oldest first. */
  readonly asked: readonly (string | undefined)[];
  /** Requests without an answer. */
  readonly heldCount: number;
  /** Answers the oldest of them. */
  answerNext(): Promise<void>;
}

async function startHeldReplica(name = 'a'): Promise<HeldReplica> {
  const held: ReplicaExchange[] = [];
  const replica = await startFakeReplica({ name, script: (exchange) => void held.push(exchange) });
  const answer = answerJson(COMPLETION);
  return Object.defineProperties(replica, {
    asked: { get: () => replica.requests.map((request) => request.header('x-feature')[0]) },
    heldCount: { get: () => held.length },
    answerNext: {
      value: async () => {
        const exchange = held.shift();
        if (exchange === undefined) throw new Error('nobody waits for an answer');
        await answer(exchange);
      },
    },
  }) as HeldReplica;
}

const limited = (replica: FakeReplica, max_inflight = 1) => ({
  name: replica.name,
  url: replica.url,
  max_inflight,
});

/** A gateway whose one replica has one request in flight, from the client `first`, and no room. */
async function startFull(
  replica: HeldReplica,
  config: StartGatewayOptions['config'] = {},
): Promise<{ readonly gateway: StartedGateway; readonly first: Promise<Response> }> {
  const gateway = await startGateway({ replicas: [limited(replica)], config });
  const first = send(gateway, 'first');
  await replica.untilRequests(1);
  return { gateway, first };
}

/** Sends a chat; its feature tells who it is, at the replica and in the record. */
const send = (gateway: StartedGateway, feature: string, init: RequestInit = {}) =>
  gateway.chat({}, { ...init, headers: { 'X-Feature': feature } });

interface ReplicaList {
  readonly replicas: readonly { readonly inflight: number; readonly max_inflight: number | null }[];
  readonly waiting: number;
}

const list = async (gateway: StartedGateway) =>
  (await (await gateway.admin('/admin/replicas')).json()) as ReplicaList;

/** Asks the admin API until so many requests wait. */
async function untilWaiting(gateway: StartedGateway, count: number): Promise<void> {
  await askUntil(
    () => list(gateway),
    ({ waiting }) => waiting === count,
  );
}

/** Sends one more request and resolves when it waits, behind those that do already. */
async function sendToWait(gateway: StartedGateway, feature: string, init: RequestInit = {}) {
  const { waiting } = await list(gateway);
  const response = send(gateway, feature, init);
  await untilWaiting(gateway, waiting + 1);
  return { response };
}

const codeOf = async (response: Response) =>
  ((await response.json()) as { error: { code: string } }).error.code;

const recordOf = async (gateway: StartedGateway, feature: string, count: number) =>
  (await gateway.waitForRecords(count)).find((record) => record.feature === feature);

describe('max_inflight', () => {
  test('is never exceeded, and who comes then waits and is served in the order of arrival', async () => {
    await using replica = await startHeldReplica();
    const { gateway, first } = await startFull(replica);
    await using _ = gateway;
    const waiting = [first];
    for (const feature of ['2', '3', '4']) waiting.push((await sendToWait(gateway, feature)).response);

    for (let served = 1; served <= 4; served++) {
      const { replicas } = await list(gateway);
      expect(replicas).toMatchObject([{ inflight: 1, max_inflight: 1 }]);
      expect(replica.requests).toHaveLength(served);
      await replica.answerNext();
      await replica.untilRequests(Math.min(served + 1, 4));
    }

    expect(replica.asked).toEqual(['first', '2', '3', '4']);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  test('leaves the time of waiting in the record, and in that of who did not wait nothing', async () => {
    await using replica = await startHeldReplica();
    const { gateway, first } = await startFull(replica);
    await using _ = gateway;
    const { response } = await sendToWait(gateway, 'second');
    await replica.answerNext();
    await replica.untilRequests(2);
    await replica.answerNext();
    await Promise.all([first, response]);

    const [waited, served] = [await recordOf(gateway, 'second', 2), await recordOf(gateway, 'first', 2)];

    expect(waited).toMatchObject({ status: 200, attempts: 1, queue_ms: expect.any(Number) });
    expect(waited?.queue_ms).toBeGreaterThan(0);
    expect(waited?.queue_ms).toBeLessThan(waited?.e2e_ms ?? 0);
    expect(served).not.toHaveProperty('queue_ms');
  });

  test('counts streams until they end', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    const streams: ReplicaExchange[] = [];
    replica.answerOnce(async (exchange) => {
      streams.push(exchange);
      await exchange.head(200, ['Content-Type', 'text/event-stream']);
      await exchange.write('data: {"choices":[]}\n\n');
    });
    await using gateway = await startGateway({ replicas: [limited(replica)] });
    const stream = await gateway.chat({ stream: true });
    await replica.untilRequests(1);

    const { response } = await sendToWait(gateway, 'second');
    expect(replica.requests).toHaveLength(1);
    streams[0]?.end('data: [DONE]\n\n');
    await stream.text();

    expect((await response).status).toBe(200);
  });

  test('sends requests to whichever replica has room first', async () => {
    await using a = await startHeldReplica('a');
    await using b = await startHeldReplica('b');
    await using gateway = await startGateway({ replicas: [limited(a), limited(b)] });
    const responses = [send(gateway, '1')];
    await a.untilRequests(1);
    responses.push(send(gateway, '2'));
    await b.untilRequests(1);
    for (const feature of ['3', '4']) responses.push((await sendToWait(gateway, feature)).response);

    await b.answerNext();
    await b.untilRequests(2);
    await b.answerNext();
    await b.untilRequests(3);

    expect([a.asked, b.asked]).toEqual([['1'], ['2', '3', '4']]);
    await a.answerNext();
    await b.answerNext();
    expect((await Promise.all(responses)).every(({ ok }) => ok)).toBe(true);
  });

  test('passes over a replica without room as long as another one has some', async () => {
    await using a = await startHeldReplica('a');
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [limited(a), { name: 'b', url: b.url }] });
    const first = send(gateway, 'first');
    await a.untilRequests(1);

    for (let i = 0; i < 3; i++) expect((await send(gateway, `${i}`)).status).toBe(200);

    expect([a.requests.length, b.requests.length]).toEqual([1, 3]);
    await a.answerNext();
    await first;
  });

  test('does not hold for the model listing, which no engine has to work for', async () => {
    await using replica = await startHeldReplica();
    const { gateway, first } = await startFull(replica);
    await using _ = gateway;

    const listing = fetch(`${gateway.url}/v1/models`);
    await replica.untilRequests(2);

    expect(replica.requests[1]?.url).toBe('/v1/models');
    await replica.answerNext();
    await replica.answerNext();
    expect((await Promise.all([first, listing])).every(({ ok }) => ok)).toBe(true);
  });

  test('lets nobody who comes later overtake who waits', async () => {
    await using replica = await startHeldReplica();
    const { gateway } = await startFull(replica);
    await using _ = gateway;
    const { response } = await sendToWait(gateway, 'waits');

    // The connection of the newcomer is accepted in the very moment in which the place becomes free.
    const newcomer = send(gateway, 'newcomer');
    await replica.answerNext();
    await replica.untilRequests(2);

    expect(replica.asked).toEqual(['first', 'waits']);
    await replica.answerNext();
    await replica.untilRequests(3);
    await replica.answerNext();
    expect((await Promise.all([response, newcomer])).every(({ ok }) => ok)).toBe(true);
  });
});

describe('a wait is bounded', () => {
  test('by timeouts.queue: then it is a 503 with Retry-After, and the record says how long it waited', async () => {
    await using replica = await startHeldReplica();
    const { gateway } = await startFull(replica, { timeouts: { queue: '50ms' } });
    await using _ = gateway;

    const response = await send(gateway, 'second');

    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await codeOf(response)).toBe('overloaded');
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ status: 503, error_type: 'overloaded', feature: 'second' });
    // Node counts a timer from the begin of the event loop's turn, which may be long on a busy machine.
    expect(record.queue_ms).toBeGreaterThan(25);
    expect(record).not.toHaveProperty('replica');
    expect(record).not.toHaveProperty('attempts');
    expect(replica.requests).toHaveLength(1);
    await replica.answerNext();
  });

  test('by timeouts.queue also where a request waits twice: the time is for all its waits together', async () => {
    await using a = await startHeldReplica('a');
    await using b = await startHeldReplica('b');
    await using gateway = await startGateway({
      replicas: [limited(a), { ...limited(b), models: ['m', 'of-b'] }],
      config: { timeouts: { queue: '2s' }, retry: { statuses: [503] } },
    });
    const ask = (feature: string, model: string) =>
      gateway.chat({ model }, { headers: { 'X-Feature': feature } });
    const atB = ask('at b', 'of-b');
    await b.untilRequests(1);
    const atA = ask('at a', 'm');
    await a.untilRequests(1);
    a.answerOnce(answerJson({ error: 'busy' }, { status: 503 }));
    const twice = ask('twice', 'm');
    await untilWaiting(gateway, 1);
    await sleep(300); // so that no timer's rounding decides which of them waits longer
    const once = ask('once', 'of-b');
    await untilWaiting(gateway, 2);
    await a.answerNext();

    expect([(await twice).status, (await once).status]).toEqual([503, 503]);

    // Who began to wait first is the first to give up.
    const records = await gateway.waitForRecords(3);
    expect(records.map(({ feature }) => feature)).toEqual(['at a', 'twice', 'once']);
    expect(records[1]).toMatchObject({ replica: 'a', attempts: 1 });
    await b.answerNext();
    expect([(await atA).status, (await atB).status]).toEqual([200, 200]);
  });

  test('by limits.queue: beyond it a request is refused at once, and did not wait', async () => {
    await using replica = await startHeldReplica();
    const { gateway } = await startFull(replica, { limits: { queue: 1 } });
    await using _ = gateway;
    const { response } = await sendToWait(gateway, 'second');

    const refused = await send(gateway, 'third');

    expect(refused.status).toBe(503);
    expect(await codeOf(refused)).toBe('overloaded');
    expect(await gateway.nextRecord()).not.toHaveProperty('queue_ms');
    await replica.answerNext();
    await replica.untilRequests(2);
    await replica.answerNext();
    expect((await response).status).toBe(200);
  });

  test('by nothing at all with limits.queue: 0', async () => {
    await using replica = await startHeldReplica();
    const { gateway } = await startFull(replica, { limits: { queue: 0 } });
    await using _ = gateway;

    expect((await send(gateway, 'second')).status).toBe(503);
    await replica.answerNext();
  });

  test('by the client: one that leaves gives up its place', async () => {
    await using replica = await startHeldReplica();
    const { gateway } = await startFull(replica);
    await using _ = gateway;
    const leaving = new AbortController();
    const left = await sendToWait(gateway, 'leaves', { signal: leaving.signal });
    left.response.catch(() => undefined);
    const stayed = await sendToWait(gateway, 'stays');

    leaving.abort();
    const record = await gateway.nextRecord();
    await replica.answerNext();
    await replica.untilRequests(2);

    expect(record).toMatchObject({ feature: 'leaves', status: 499, error_type: 'client_closed' });
    expect(record.queue_ms).toBeGreaterThan(0);
    expect(replica.asked).toEqual(['first', 'stays']);
    await replica.answerNext();
    expect((await stayed.response).status).toBe(200);
    expect((await list(gateway)).waiting).toBe(0);
  });

  test('by a shutdown, which cuts it with the others', async () => {
    await using replica = await startHeldReplica();
    const { gateway, first } = await startFull(replica, { shutdown: { grace: '0s' } });
    const { response } = await sendToWait(gateway, 'second');
    first.catch(() => undefined);

    expect((await gateway.close()).cutRequests).toBe(2);

    expect((await response).status).toBe(503);
    expect(await recordOf(gateway, 'second', 2)).toMatchObject({ error_type: 'shutting_down' });
  });
});

describe('what changes while requests wait', () => {
  const change = (gateway: StartedGateway, name: string, what: 'drain' | 'undrain') =>
    gateway.admin(`/admin/replicas/${name}/${what}`, { method: 'POST' });

  test('the last replica is drained: they are told so at once', async () => {
    await using replica = await startHeldReplica();
    const { gateway, first } = await startFull(replica);
    await using _ = gateway;
    const { response } = await sendToWait(gateway, 'second');

    await change(gateway, 'a', 'drain');

    expect(await codeOf(await response)).toBe('all_replicas_drained');
    expect(await gateway.nextRecord()).toMatchObject({ status: 503, queue_ms: expect.any(Number) });
    await replica.answerNext();
    expect((await first).status).toBe(200);
  });

  test('a replica with room is undrained: it takes them', async () => {
    await using a = await startHeldReplica('a');
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [limited(a), limited(b)] });
    await change(gateway, 'b', 'drain');
    const first = send(gateway, 'first');
    await a.untilRequests(1);
    const { response } = await sendToWait(gateway, 'second');

    await change(gateway, 'b', 'undrain');

    expect((await response).status).toBe(200);
    expect(b.requests).toHaveLength(1);
    await a.answerNext();
    await first;
  });

  test('a replica that is drained gives its places to nobody any more', async () => {
    await using a = await startHeldReplica('a');
    await using b = await startHeldReplica('b');
    await using gateway = await startGateway({ replicas: [limited(a), limited(b)] });
    const first = [send(gateway, '1')];
    await a.untilRequests(1);
    first.push(send(gateway, '2'));
    await b.untilRequests(1);
    const { response } = await sendToWait(gateway, '3');

    await change(gateway, 'a', 'drain');
    await a.answerNext();
    await first[0];
    expect((await list(gateway)).waiting).toBe(1);
    await b.answerNext();
    await b.untilRequests(2);

    expect([a.asked, b.asked]).toEqual([['1'], ['2', '3']]);
    await b.answerNext();
    expect((await response).status).toBe(200);
  });

  test('the replica that had room refuses the connection: the request waits for the other', async () => {
    await using a = await startHeldReplica('a');
    await using gateway = await startGateway({
      replicas: [limited(a), { name: 'b', url: refusedUrlBeside(a), max_inflight: 1 }],
    });
    const first = send(gateway, 'first');
    await a.untilRequests(1);

    const { response } = await sendToWait(gateway, 'second');
    await a.answerNext();
    await a.untilRequests(2);
    await a.answerNext();

    expect((await first).status).toBe(200);
    expect((await response).status).toBe(200);
    expect(await recordOf(gateway, 'second', 2)).toMatchObject({ attempts: 2, replica: 'a' });
  });
});

describe('with several workers', () => {
  test('max_inflight holds over all of them, and whoever waits in one is woken by the others', async () => {
    await using replica = await startHeldReplica();
    await using gateway = await startGateway({
      replicas: [limited(replica, 2)],
      config: { gateway: { workers: 2 } },
    });
    const count = 24;
    // Each on a connection of its own: the system spreads those over the workers.
    const responses = Array.from({ length: count }, (_, id) => send(gateway, `${id}`));
    await untilWaiting(gateway, count - 2);
    await replica.untilRequests(2);
    expect(replica.requests).toHaveLength(2);

    for (let answered = 1; answered <= count; answered++) {
      await replica.answerNext();
      await replica.untilRequests(Math.min(answered + 2, count));
      expect((await list(gateway)).replicas[0]?.inflight).toBeLessThanOrEqual(2);
    }

    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual(Array(count).fill(200));
    expect((await list(gateway)).waiting).toBe(0);
  });

  test('a worker that dies gives back its places, and takes its requests out of the line', async () => {
    using threads = watchWorkerThreads();
    await using replica = await startHeldReplica();
    await using gateway = await startGateway({
      replicas: [limited(replica, 2)],
      config: { gateway: { workers: 2 } },
    });
    const statuses = Array.from({ length: 16 }, async (_, id) => {
      const response = await send(gateway, `${id}`).catch(() => null);
      return response?.status ?? 'cut';
    });
    await untilWaiting(gateway, 14);

    await threads.kill(0);

    let isOver = false;
    const settled = Promise.all(statuses).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      if (replica.heldCount > 0) await replica.answerNext();
      expect((await list(gateway)).replicas[0]?.inflight).toBeLessThanOrEqual(2);
    }
    expect(new Set(await settled)).toEqual(new Set([200, 'cut']));
    // A client has its answer a moment before its worker has counted it.
    await askUntil(
      () => list(gateway),
      ({ replicas }) => replicas[0]?.inflight === 0,
    );
    expect((await list(gateway)).waiting).toBe(0);
  });
});
