import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import {
  answerJson,
  type FakeReplica,
  hang,
  partial,
  refusedUrlBeside,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { type Overview, overviewSchema } from '../../../src/admin/dashboard/overview.ts';

const readOverview = async (gateway: StartedGateway, after = 0): Promise<Overview> =>
  overviewSchema.parse(await (await gateway.admin(`/admin/overview?after=${after}`)).json());

/** Asks again until the overview is as expected: what other threads report has no event. */
function untilOverview(
  gateway: StartedGateway,
  isExpected: (overview: Overview) => boolean,
): Promise<Overview> {
  return askUntil(() => readOverview(gateway), isExpected);
}

interface RecordsAnswer {
  readonly records: readonly Overview['records'][number][];
  readonly last_record: number;
}

const readRecords = async (gateway: StartedGateway, query: string) =>
  (await (await gateway.admin(`/admin/records?${query}`)).json()) as RecordsAnswer;

const statusesOf = async (gateway: StartedGateway, query: string) =>
  (await readRecords(gateway, query)).records.map(({ status }) => status);

/** Requests of each kind, in this order: the records of the tests below. */
async function sendOneOfEach(gateway: StartedGateway, a: FakeReplica): Promise<void> {
  const send = async (members: object, tenant: string) => {
    const response = await gateway.chat(members, { headers: { 'X-Tenant': tenant } });
    await response.text().catch(() => undefined);
  };
  await send({}, 'acme');
  a.answerOnce(answerJson({ error: {} }, { status: 500 }));
  await send({}, 'acme');
  a.answerOnce(answerJson({ error: {} }, { status: 404 }));
  await send({}, '__proto__');
  a.answerOnce(partial('application/json', ['{'], 'cut', ['Content-Length', '100']));
  await send({}, '_OTHER');
  await send({ model: 'absent' }, 'acme');
  await send({ model: 'refusing' }, 'acme');
  a.answerOnce(hang);
  const leaving = new AbortController();
  const left = gateway.chat({}, { signal: leaving.signal }).catch(() => undefined);
  await a.untilRequests(5);
  leaving.abort();
  await left;
  await gateway.waitForRecords(7);
}

describe('one request of each kind', () => {
  let a: FakeReplica;
  let gateway: StartedGateway;

  beforeAll(async () => {
    a = await startFakeReplica({ name: 'a' });
    const refusing = { name: 'b', url: refusedUrlBeside(a), models: ['refusing'] };
    gateway = await startGateway({ replicas: [a, refusing] });
    await sendOneOfEach(gateway, a);
  });

  afterAll(async () => {
    await gateway.close();
    await a.close();
  });

  test('is counted once: errors, client errors and cancellations apart', async () => {
    const { last_minute, replicas } = await readOverview(gateway);
    expect(last_minute).toMatchObject({ requests: 7, errors: 3, client_errors: 2, canceled: 1 });
    expect(replicas).toMatchObject([
      { name: 'a', last_minute: { requests: 5, attempts: 5, errors: 2, client_errors: 1, canceled: 1 } },
      { name: 'b', last_minute: { requests: 1, attempts: 1, errors: 1, outcomes: { not_connected: 1 } } },
    ]);
    expect(replicas[0]?.trend.attempts).toHaveLength(60);
    expect(replicas[0]?.trend.errors).toHaveLength(60);
  });

  test('is counted for its model and its tenant, whatever their names', async () => {
    const { models, tenants } = await readOverview(gateway);
    const toCounts = (rows: Overview['models']) =>
      rows.map(({ name, last_minute }) => [name, last_minute.requests]);
    expect(toCounts(models)).toEqual([
      ['m', 5],
      ['absent', 1],
      ['refusing', 1],
    ]);
    expect(toCounts(tenants)).toEqual([
      ['acme', 4],
      ['__proto__', 1],
      ['_OTHER', 1],
    ]);
  });

  test('has its reason among those of failures if it failed', async () => {
    const { failure_reasons } = await readOverview(gateway);
    expect(failure_reasons).toHaveLength(5);
    expect(failure_reasons).toEqual(
      expect.arrayContaining([
        { code: '500', status: 500, replica: 'a', model: 'm', count: 1 },
        { code: '404', status: 404, replica: 'a', model: 'm', count: 1 },
        { code: 'upstream_failed', status: 200, replica: 'a', model: 'm', count: 1 },
        { code: 'model_not_found', status: 404, replica: null, model: 'absent', count: 1 },
        { code: 'no_replica_reachable', status: 502, replica: 'b', model: 'refusing', count: 1 },
      ]),
    );
  });

  test('is among the failures if it failed, newest first', async () => {
    const { failures, last_record } = await readOverview(gateway);
    expect(failures.map(({ status }) => status)).toEqual([502, 404, 200, 404, 500]);
    expect((await readOverview(gateway, 5)).failures.map(({ status }) => status)).toEqual([502]);
    expect((await readOverview(gateway, last_record)).failures).toEqual([]);
  });

  test('shows which of its attempts failed, and why', async () => {
    const { failures, records } = await readOverview(gateway);
    expect(failures[0]?.failed_attempts).toEqual([
      {
        replica: 'b',
        failure: 'not_connected',
        status: null,
        duration_ms: expect.any(Number),
        after_ms: expect.any(Number),
      },
    ]);
    expect(records.filter(({ failed_attempts }) => failed_attempts !== undefined)).toHaveLength(1);
  });

  test.each<[string, readonly number[]]>([
    ['replica=a', [499, 200, 404, 500, 200]],
    ['replica=b', [502]],
    ['model=absent', [404]],
    ['tenant=__proto__', [404]],
    ['tenant=nobody', []],
    ['tenant=', []],
    ['status=404', [404, 404]],
    ['status=4xx', [499, 404, 404]],
    ['status=5xx&replica=a', [500]],
    ['failed=true', [502, 404, 200, 404, 500]],
    ['failed=true&limit=2', [502, 404]],
    ['failed=true&status=404&replica=a', [404]],
    ['failed=false', [499, 200]],
    ['after=5', [499, 502]],
    ['after=7', []],
  ])('is listed with %s if it matches', async (query, statuses) => {
    expect(await statusesOf(gateway, query)).toEqual(statuses);
    expect((await readRecords(gateway, query)).last_record).toBe(7);
  });

  test.each([
    'status=4',
    'status=4x',
    'status=600',
    'failed=yes',
    'after=-1',
    'after=x',
    'tenant=a&tenant=b',
  ])('%s is refused, naming the parameter', async (query) => {
    const response = await gateway.admin(`/admin/records?${query}`);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: query.split('=')[0] } });
  });
});

describe('failures', () => {
  test('stay when hundreds of successes have followed', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a] });
    await gateway.chat({ model: 'absent' });
    using connection = await RawConnection.open(gateway.url);
    const chat = postBytes('/v1/chat/completions', '{"model":"m"}').toString();
    connection.write(chat.repeat(520));
    await gateway.waitForRecords(521);
    const { records, failures } = await readOverview(gateway);
    expect(records.map(({ model }) => model)).not.toContain('absent');
    expect(failures.map(({ model }) => model)).toEqual(['absent']);
    expect(await statusesOf(gateway, 'failed=true')).toEqual([404]);
    expect(await statusesOf(gateway, 'model=absent')).toEqual([]);
  });
});

describe('the gateway', () => {
  test('says which it is, and when its configuration was read', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a], config: { gateway: { name: 'edge-1' } } });
    const before = (await readOverview(gateway)).gateway;
    expect(before).toMatchObject({ name: 'edge-1', host: hostname(), pid: process.pid, workers: 1 });
    expect(before.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(before.config_loaded_at).toBe(before.started_at);

    gateway.writeConfig('not: [valid');
    expect((await gateway.reload()).status).toBe(422);
    expect((await readOverview(gateway)).gateway).toEqual(before);

    gateway.writeConfig({});
    expect((await gateway.reload()).status).toBe(200);
    const after = (await readOverview(gateway)).gateway;
    expect(Date.parse(after.config_loaded_at)).toBeGreaterThan(Date.parse(before.config_loaded_at));
    expect(after.started_at).toBe(before.started_at);
  });
});

test('a gateway of two workers shows how busy each is, how much of its limits it uses, and failed attempts', async () => {
  await using a = await startFakeReplica({ name: 'a', script: hang });
  const refusing = { name: 'b', url: refusedUrlBeside(a) };
  const limits = { connections: 123, buffered: '64MiB' };
  await using gateway = await startGateway({
    replicas: [{ ...a, max_inflight: 1 }, refusing],
    config: { gateway: { workers: 2 }, limits, timeouts: { queue: '10s' } },
  });
  const leaving = new AbortController();
  const served = gateway.chat({}, { signal: leaving.signal }).catch(() => undefined);
  await a.untilRequests(1);
  const waiting = gateway.chat({}, { signal: leaving.signal }).catch(() => undefined);
  const busy = await untilOverview(gateway, ({ saturation }) => saturation.waiting === 1);
  expect(busy.gateway.workers).toBe(2);
  expect(busy.saturation).toEqual({
    workers: [1, 2].map((worker) => ({ worker, event_loop_utilization: expect.any(Number) })),
    connections: { now: 2, limit: 123 },
    buffered_bytes: { now: expect.any(Number), limit: 64 * 1024 ** 2 },
    waiting: 1,
  });
  expect(busy.saturation.buffered_bytes.now).toBeGreaterThan(0);

  leaving.abort();
  await Promise.all([served, waiting]);
  const { records } = await untilOverview(gateway, ({ last_record }) => last_record === 2);
  const attempts = records.flatMap(({ failed_attempts }) => failed_attempts ?? []);
  expect(attempts.length).toBeGreaterThan(0);
  for (const attempt of attempts)
    expect(attempt).toMatchObject({ replica: 'b', failure: 'not_connected', status: null });
  const idle = await untilOverview(gateway, ({ saturation }) => saturation.connections.now === 0);
  expect(idle.saturation.buffered_bytes.now).toBe(0);
});
