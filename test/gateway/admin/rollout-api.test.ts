import { describe, expect, test } from 'vitest';
import type { RolloutFacts } from '#rollout-board/facts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { answerJson, COMPLETION, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { rolloutFacts } from '#testkit/rollout-facts.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const POST = { method: 'POST' };

const report = (gateway: StartedGateway, facts: RolloutFacts) =>
  gateway.admin(`/admin/rollouts/${facts.id}/report`, {
    ...POST,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(facts),
  });

const LIST = { object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'x' }] };

describe('POST /admin/replicas/{name}/probe', () => {
  const POSTED = { chat: '/v1/chat/completions', text: '/v1/completions', embeddings: '/v1/embeddings' };
  const refused = answerJson({}, { status: 404 });

  /** Answers the list of models, and each small request by its path; 404 if there is none. */
  const asEngine =
    (answers: Readonly<Record<string, Script>>, list: object = LIST): Script =>
    async (exchange) => {
      const { method, url } = exchange.request;
      await (method === 'GET' ? answerJson(list) : (answers[url] ?? refused))(exchange);
    };

  test.each<[string, Script, object]>([
    [
      'chats',
      asEngine({ [POSTED.chat]: answerJson(COMPLETION) }),
      { ready: true, completed_by: POSTED.chat },
    ],
    [
      'completes texts',
      asEngine({ [POSTED.text]: answerJson(COMPLETION) }),
      { ready: true, completed_by: POSTED.text },
    ],
    [
      'embeds',
      asEngine({ [POSTED.embeddings]: answerJson({ data: [{ embedding: [1] }] }) }),
      { ready: true, completed_by: POSTED.embeddings },
    ],
    [
      'fails',
      asEngine({ [POSTED.chat]: answerJson({}, { status: 500 }) }),
      { ready: false, problem: '/v1/chat/completions: status 500' },
    ],
    [
      'answers without a result',
      asEngine({ [POSTED.chat]: answerJson({ choices: [] }) }),
      { ready: false, problem: '/v1/chat/completions: an answer without a result' },
    ],
    [
      'has another model',
      asEngine({}, { data: [{ id: 'n' }] }),
      { ready: false, problem: 'it does not list m' },
    ],
    [
      'has no list',
      answerJson({}, { status: 503 }),
      { ready: false, problem: '/v1/models has status 503 and no list of models' },
    ],
  ])('asks a drained replica that %s', async (_title, script, expected) => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, api_key: 'secret-key' }],
    });
    await gateway.admin('/admin/replicas/a/drain', POST);
    replica.answerProbes(script);
    const response = await gateway.admin('/admin/replicas/a/probe?completion=true', POST);
    expect(await response.json()).toMatchObject(expected);
    expect(replica.probes.at(-1)?.header('authorization')).toEqual(['Bearer secret-key']);
    expect(await gateway.replicas()).toMatchObject([{ drained: true, reachability: 'unknown' }]);
    expect(gateway.records).toEqual([]);
  });

  test('says that an engine is not there', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    await replica.close();
    const response = await gateway.admin('/admin/replicas/a/probe', POST);
    expect(await response.json()).toMatchObject({
      ready: false,
      problem: 'connection refused',
      models: null,
    });
    expect((await gateway.admin('/admin/replicas/x/probe', POST)).status).toBe(404);
  });
});

describe('POST /admin/rollout-steps', () => {
  const IDS = { trace_id: 'ab'.repeat(16), span_id: 'cd'.repeat(8) };
  const toPath = (members: Readonly<Record<string, string>>) =>
    `/admin/rollout-steps?${new URLSearchParams(members)}`;

  test('makes a span with the ids, the figures and the time that the caller gives', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using collector = await startFakeCollector();
    await using gateway = await startGateway({ replicas: [replica], collector });
    const members = {
      ...IDS,
      parent_span_id: 'ef'.repeat(8),
      step: 'compare',
      start_ms: '1700000000000',
      outcome: 'bad',
      replica: 'a',
      sentence: 'slow\u0007er',
      first_token_ratio: '1.21',
      requests: '1204',
    };
    expect((await gateway.admin(toPath(members), POST)).status).toBe(200);
    await gateway.admin('/admin/replicas/a/drain', POST);
    await collector.waitFor(({ spans }) => spans.length === 2);
    const step = collector.spans.find(({ name }) => name === 'compare');
    const drain = collector.spans.find(({ name }) => name === 'drain');
    expect(step).toMatchObject({
      traceId: IDS.trace_id,
      spanId: IDS.span_id,
      parentSpanId: 'ef'.repeat(8),
      kind: 1,
      startTimeUnixNano: '1700000000000000000',
      attributes: {
        'gateway.outcome': 'bad',
        'gateway.replica': 'a',
        'gateway.sentence': 'slow er',
        'gateway.first_token_ratio': 1.21,
        'gateway.requests': 1204,
      },
    });
    expect(drain?.traceId).not.toBe(IDS.trace_id);
  });

  test('refuses what is no id, no step, no outcome and no number', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    const valid = { ...IDS, step: 'rollout', start_ms: '1', outcome: 'ok' };
    for (const [param, value] of [
      ['trace_id', '0'.repeat(32)],
      ['span_id', 'x'],
      ['parent_span_id', ''],
      ['step', 'other'],
      ['start_ms', '-1'],
      ['outcome', 'fine'],
      ['gaps_ratio', 'NaN'],
    ] as const) {
      const response = await gateway.admin(toPath({ ...valid, [param]: value }), POST);
      expect(await response.json()).toMatchObject({ error: { code: 'invalid_request', param } });
    }
  });
});

describe('POST /admin/rollouts/{id}/report', () => {
  const other = { ...rolloutFacts().driver, id: '2'.repeat(16), user: 'bob', host: 'ops-2' };
  const ended = { state: 'done', ended_at: '2026-01-01T00:00:09Z' } as const;

  test.each<[string, string, Partial<RolloutFacts>, RegExp]>([
    [
      'another rollout is at work on one of its replicas',
      'rollout_conflict',
      { id: '0000000b', started_at: '2026-01-01T00:00:05Z' },
      /^The rollout 0000000a of ann@ops-1, which began at 2026-01-01T00:00:00Z, is at work on these replicas too: a, b\./,
    ],
    [
      'another driver wants to go on while the first one does',
      'rollout_driven',
      { run: 2, seq: 2_000, driver: { ...other, replaces: null } },
      /^ann@ops-1 drives this rollout: stop it there, or abort it$/,
    ],
    [
      'it has gone on elsewhere since',
      'rollout_taken_over',
      { seq: 3, driver: { ...other, replaces: null } },
      /^This rollout has gone on elsewhere: ann@ops-1 drives it, or did$/,
    ],
  ])('is refused when %s', async (_title, code, changes, message) => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    expect((await report(gateway, rolloutFacts())).status).toBe(200);
    const refused = await report(gateway, rolloutFacts(changes));
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ error: { code, message: expect.stringMatching(message) } });
  });

  test('is refused when it is over', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica] });
    await report(gateway, rolloutFacts({ ...ended, sentence: '2 of 2 replicas done' }));
    const refused = await report(gateway, rolloutFacts({ run: 2, seq: 2_000 }));
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({
      error: {
        code: 'rollout_over',
        message: 'This rollout is over: 2 of 2 replicas done. Begin another one with --new',
      },
    });
  });
});
