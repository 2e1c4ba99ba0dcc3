import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import {
  answerJson,
  COMPLETION,
  type FakeReplica,
  hang,
  type Script,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { keepChatting } from '#testkit/load/paced-chats.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

interface Verdict {
  readonly verdict: string;
  readonly sentence: string;
  readonly reasons: readonly string[];
  readonly requests: number;
  readonly complete: boolean;
  readonly error?: { readonly code: string; readonly param: string | null; readonly message: string };
}

async function ask(gateway: StartedGateway, query: Readonly<Record<string, string>>): Promise<Verdict> {
  const response = await gateway.admin(`/admin/verdict?${new URLSearchParams(query)}`);
  return (await response.json()) as Verdict;
}

/** Sends chats until there is a verdict. It goes by blocks of two seconds, with ten requests of each side or more. */
async function untilVerdict(
  gateway: StartedGateway,
  query: Readonly<Record<string, string>>,
  { pauseMs = 100 } = {},
) {
  await using _chats = keepChatting(gateway, { clientCount: 6, pauseMs });
  return await askUntil(
    () => ask(gateway, query),
    ({ verdict }) => verdict !== 'undecided',
    250,
  );
}

/** Answers after a while. */
const slowly =
  (ms: number): Script =>
  async (exchange) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, ms);
    await promise;
    await answerJson(COMPLETION)(exchange);
  };

/** Starts `a`, which may be bad, and its peers. */
async function startScene(script: Script, workers: number) {
  const replicas = await startFakeReplicas('a', 'b', 'c');
  for (const replica of replicas as readonly FakeReplica[]) replica.answer(slowly(20));
  replicas[0].answer(script);
  const gateway = await startGateway({ replicas: [...replicas], config: { gateway: { workers } } });
  return {
    gateway,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await replicas[Symbol.asyncDispose]();
    },
  };
}

describe.each([1, 2])('with %i workers', (workers) => {
  test('a replica that fails is bad', async () => {
    await using scene = await startScene(answerJson({}, { status: 500 }), workers);
    const found = await untilVerdict(scene.gateway, { candidate: 'a', baseline: 'b,c' });
    expect(found).toMatchObject({
      verdict: 'bad',
      reasons: ['errors'],
      complete: true,
      sentence: expect.stringMatching(/^is worse than its peers: 100 % of attempts fail \(peers 0 %\)/),
    });
  });

  test('a replica that is three times as slow is bad', async () => {
    await using scene = await startScene(slowly(60), workers);
    // It takes eight blocks, whatever is in them, and 13 with the usual certainty.
    const query = { candidate: 'a', false_alarm: '0.05' };
    const found = await untilVerdict(scene.gateway, query, { pauseMs: 300 });
    expect(found).toMatchObject({ verdict: 'bad', reasons: ['duration'] });
  });
});

test('a replica that is like its peers is good, and the metrics show it', async () => {
  await using scene = await startScene(slowly(20), 1);
  const { gateway } = scene;
  const found = await untilVerdict(gateway, { candidate: 'a', baseline: 'b,c', missed: '0.2' });
  expect(found).toMatchObject({ verdict: 'good', reasons: [] });
  expect(found.requests).toBeGreaterThanOrEqual(100);
  const metrics = await (await gateway.admin('/metrics')).text();
  expect(metrics).toContain('gateway_verdict{candidate="a",baseline="b,c",verdict="good"} 1\n');
  expect(metrics).toContain('gateway_verdict{candidate="a",baseline="b,c",verdict="bad"} 0\n');
  expect(metrics).toMatch(
    /^gateway_verdict_ratio\S*\{candidate="a",baseline="b,c",measure="duration"\} [01]\.\d+$/m,
  );
  expect(metrics).toMatch(/^gateway_verdict_requests\{candidate="a",baseline="b,c"\} \d{3,}$/m);
});

test('a replica that fails is bad even if another one serves each of its requests in the end', async () => {
  await using replicas = await startFakeReplicas('a', 'b', 'c');
  replicas[0].answer(answerJson({}, { status: 503 }));
  const config = { retry: { statuses: [503] } };
  await using gateway = await startGateway({ replicas: [...replicas], config });
  const found = await untilVerdict(gateway, { candidate: 'a' });
  expect(found).toMatchObject({ verdict: 'bad', reasons: ['errors'] });
  expect(new Set(gateway.records.map(({ status }) => status))).toEqual(new Set([200]));
});

test('what breaks at a server whose name a reload has given to another one says nothing of that one', async () => {
  await using replicas = await startFakeReplicas('a', 'b', 'a');
  const [former, b, present] = replicas;
  former.answer(hang);
  const config = { health: { passive: false, active: false, frozen_after: 'off', peers: {} } };
  await using gateway = await startGateway({ replicas: [former, b], config });
  const held = Array.from({ length: 80 }, () => gateway.chat());
  await former.untilRequests(40);
  await gateway.waitForRecords(40);
  // When a request began is reckoned from its end, with the time that the gateway has not looked at its record yet.
  await sleep(2_000);
  gateway.writeConfig({ replicas: [present, b] });
  expect((await gateway.reload()).status).toBe(200);
  former.resetConnections();
  await Promise.all(held);
  const found = await untilVerdict(gateway, { candidate: 'a', missed: '0.2' });
  expect(found).toMatchObject({ verdict: 'good', figures: { error_share: 0 } });
  expect((await gateway.replicas())[0]).toMatchObject({ name: 'a', health: 'ok' });
});

test('requests before the gateway started are not known, which it says', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  await using gateway = await startGateway({ replicas: [...replicas] });
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const found = await ask(gateway, { candidate: 'a', since });
  expect(found).toMatchObject({ verdict: 'undecided', complete: false, since });
  expect(await ask(gateway, { candidate: 'a' })).toMatchObject({ complete: true });
});

test('no selector and no other value of a query is taken for what it is not', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  await using gateway = await startGateway({ replicas: [...replicas] });
  const invalid: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ['candidate', {}],
    ['candidate', { candidate: '' }],
    ['candidate', { candidate: 'a b' }],
    ['candidate', { candidate: '../../etc/passwd' }],
    ['candidate', { candidate: '<script>alert(1)</script>' }],
    ['candidate', { candidate: 'x'.repeat(10_000) }],
    ['baseline', { candidate: 'a', baseline: 'a\r\nX-Evil: 1' }],
    ['baseline', { candidate: 'a', baseline: 'pod.label/a=b&watch=true' }],
    ['since', { candidate: 'a', since: 'yesterday' }],
    ['since', { candidate: 'a', since: new Date(Date.now() + 3_600_000).toISOString() }],
    ['false_alarm', { candidate: 'a', false_alarm: '0' }],
    ['false_alarm', { candidate: 'a', false_alarm: '0.5' }],
    ['false_alarm', { candidate: 'a', false_alarm: '-1' }],
    ['missed', { candidate: 'a', missed: 'NaN' }],
  ];
  for (const [param, query] of invalid) {
    const { error } = await ask(gateway, query);
    expect([query, error]).toEqual([query, expect.objectContaining({ code: 'invalid_request', param })]);
    expect(error?.message).not.toMatch(/script|Evil|passwd/);
  }
  expect((await ask(gateway, {})).error?.message).toBe('candidate: missing');
  const unknown = await ask(gateway, { candidate: 'aa' });
  expect(unknown.error).toMatchObject({
    code: 'replica_not_found',
    message: 'No replica has this name. Did you mean a? Known: a, b.',
  });
  const hostile = await ask(gateway, { candidate: 'model:"><img src=x>\u001b[2J' });
  expect(hostile.error).toMatchObject({ code: 'selector_matches_nothing' });
  expect(JSON.stringify(hostile)).not.toContain('img');
});
