import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FakeReplica, hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { OpenApiDocument } from '#testkit/reading/openapi-document.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url }], config: { history: {} } });
  for (const tenant of ['acme', 'acme', 'other', 'acme']) {
    await (await gateway.chat({}, { headers: { 'X-Tenant': tenant } })).text();
  }
  await (await gateway.chat({ model: 'none' }, { headers: { 'X-Tenant': 'acme' } })).text();
  await gateway.waitForRecords(5);
});
afterAll(async () => {
  await gateway.close();
  await replica.close();
});

// biome-ignore lint/suspicious/noExplicitAny: the schemas of the answers are checked by openapi.test.ts
async function ask(path: string): Promise<{ status: number; body: any }> {
  const response = await gateway.admin(path);
  return { status: response.status, body: await response.json() };
}

it('finds a record by each of its ids', async () => {
  const [record] = gateway.records;
  for (const id of [record?.request_id, record?.trace_id]) {
    const { status, body } = await ask(`/admin/records/${id}`);
    expect(status).toBe(200);
    expect(body.records).toMatchObject([{ request_id: record?.request_id, seq: record?.seq }]);
  }
});

it('sums the requests by tenant and model', async () => {
  const { body } = await ask('/admin/usage?by=tenant&since=1h');
  expect(body.rows.map((row: { tenant: string; requests: number }) => [row.tenant, row.requests])).toEqual([
    ['acme', 4],
    ['other', 1],
  ]);
});

it('lists the failed records of a tenant, in a span', async () => {
  const { body } = await ask('/admin/records?since=1h&tenant=acme&failed=true');
  expect(body.records).toMatchObject([{ tenant: 'acme', error_type: 'model_not_found' }]);
  expect(body.history).toMatchObject({ next: null, time_zone: expect.any(String) });
});

it('says of its answers that the records of a worker that died are missing, but of a statement once', async () => {
  using watched = watchWorkerThreads();
  await using hanging = await startFakeReplica({ script: hang });
  await using own = await startGateway({
    replicas: [{ name: 'a', url: hanging.url }],
    config: { gateway: { workers: 2 }, history: {} },
  });
  const waiting = Array.from({ length: 20 }, () => own.chat().catch(() => null));
  await hanging.untilRequests(20);
  await Promise.all([watched.kill(0), watched.kill(1)]);
  await Promise.all(waiting);
  await watched.untilStarted(4);
  const gapsOf = async (path: string) => {
    const answer = await own.admin(path);
    return ((await answer.json()) as { gaps: { reason: string; records: number }[] }).gaps;
  };
  const gaps = await gapsOf('/admin/usage?since=1h');
  expect(gaps.reduce((sum, { records }) => sum + records, 0)).toBe(20);
  expect(new Set(gaps.map(({ reason }) => reason))).toEqual(new Set(['lost']));
  expect(await gapsOf('/admin/statement-records?tenant=acme&since=1h')).toEqual([]);
});

it.each([1, 2])('says until when all requests have ended, with %i workers', async (workers) => {
  await using own = await startGateway({
    replicas: [{ name: 'a', url: replica.url }],
    config: { gateway: { workers }, history: {} },
  });
  const endedUntil = async (): Promise<number> => {
    const answer = await own.admin('/admin/statement-records?tenant=acme&since=1h');
    return Date.parse(((await answer.json()) as { ended_until: string }).ended_until);
  };
  const gate = createStreamGate([': begun\n\n'], 'data: [DONE]\n\n');
  replica.answerOnce(gate.script);
  const response = await own.chat({ stream: true });
  const whileItRuns = await endedUntil();
  gate.open();
  await response.text();
  const { ts, e2e_ms } = await own.nextRecord();
  expect(whileItRuns).toBeLessThanOrEqual(Date.parse(ts) + 1);
  expect(await endedUntil()).toBeGreaterThanOrEqual(Math.floor(Date.parse(ts) + e2e_ms) - 1);
});

it('does not say that requests have ended while the worker that has one does not answer', async () => {
  using watched = watchWorkerThreads();
  await using own = await startGateway({
    replicas: [{ name: 'a', url: replica.url }],
    config: { gateway: { workers: 2 }, history: {} },
  });
  const gate = createStreamGate([': begun\n\n'], 'data: [DONE]\n\n');
  replica.answerOnce(gate.script);
  const response = await own.chat({ stream: true });
  // Longer than an answer is waited for.
  await Promise.all([watched.block(0, 4_000), watched.block(1, 4_000)]);
  const answer = await own.admin('/admin/statement-records?tenant=acme&since=1h');
  const { ended_until } = (await answer.json()) as { ended_until: string };
  gate.open();
  await response.text();
  expect(Date.parse(ended_until)).toBeLessThanOrEqual(Date.parse((await own.nextRecord()).ts));
});

it('says that nobody had a name', async () => {
  const { body } = await ask('/admin/usage?tenant=nobody&since=1h');
  expect(body.rows).toEqual([]);
  expect(body.note).toContain('No request of this tenant');
});

it('says that an id is not here, and since when records are', async () => {
  const { status, body } = await ask('/admin/records/of-elsewhere');
  expect(status).toBe(404);
  expect(body.error.code).toBe('record_not_found');
  expect(body.error.message).toMatch(/has the records since \d{4}-/);
});

it('refuses spans that are none, and says which parameter', async () => {
  for (const query of ['since=soon', 'since=today&until=7d', 'step=1x', 'by=colour', 'step=1m&since=400d']) {
    const { status, body } = await ask(`/admin/usage?${query}`);
    expect([status, body.error.code]).toEqual([400, 'invalid_request']);
  }
});

it.each(['records', 'timeline'])('refuses a page of %s that is of another history', async (list) => {
  const { body } = await ask(`/admin/${list}?limit=1`.concat(list === 'records' ? '&since=1h' : ''));
  const next = list === 'records' ? body.history.next : (body.next ?? body.events[0].number);
  expect((await ask(`/admin/${list}?before=${next}`)).status).toBe(200);
  const { status, body: refused } = await ask(`/admin/${list}?before=${next + 1e12}`);
  expect([status, refused.error]).toMatchObject([400, { param: 'before' }]);
});

it('has the drain and the undrain of a replica as one band, and an undrain that changes nothing as none', async () => {
  await gateway.admin('/admin/replicas/a/drain?reason=new%20weights', { method: 'POST' });
  await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });
  await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });
  const { body } = await ask('/admin/timeline');
  const drains = body.events.filter(({ kind }: { kind: string }) => kind === 'drain');
  expect(drains).toMatchObject([
    { subject: 'a', until: expect.any(String), details: { by: 'admin', reason: 'new weights' } },
  ]);
  expect(body.events.at(-1)).toMatchObject({ kind: 'start' });
});

it.each(['/admin/records?since=1h', '/admin/records/none', '/admin/usage', '/admin/timeline'])(
  '%s says why a history that cannot be opened does not answer, and requests are served',
  async (target) => {
    const stateDir = await temporaryFolder();
    await mkdir(join(stateDir, 'history.db'));
    const options = { replicas: [{ name: 'a', url: replica.url }], stateDir, config: { history: {} } };
    await using broken = await startGateway(options);
    expect((await broken.chat()).status).toBe(200);
    const response = await broken.admin(target);
    const document = await OpenApiDocument.read(broken);
    const path = target.replace('/none', '/{id}').replace(/\?.*/, '');
    await document.check(document.operations.get(`GET ${path}`) ?? expect.unreachable(), response.clone());
    expect([response.status, await response.json()]).toMatchObject([
      503,
      { error: { code: 'history_unavailable', message: expect.stringContaining('(it cannot be opened)') } },
    ]);
  },
);
