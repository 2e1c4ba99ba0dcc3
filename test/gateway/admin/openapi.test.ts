import { readFile } from 'node:fs/promises';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RolloutFacts } from '#rollout-board/facts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { OpenApiDocument } from '#testkit/reading/openapi-document.ts';
import { replicaFacts, rolloutFacts } from '#testkit/rollout-facts.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { renderOpenApi } from '../../../scripts/generate/openapi.ts';
import { ROUTES } from '../../../src/admin/route-table.ts';
import { callUnderName } from './call-under-name.ts';

/** A target, or what finds it; what has to be done first, if anything; the body that is sent, if any. */
type Example =
  | string
  | {
      readonly target: string;
      readonly before?: (gateway: StartedGateway) => unknown;
      readonly body?: RolloutFacts;
    }
  | { readonly find: (gateway: StartedGateway) => Promise<string> };

/** A rollout of `a` that nobody here drives any more. */
const BEGUN = rolloutFacts({ replicas: [replicaFacts('a')], replica_count: 1 });
const DONE: RolloutFacts = { ...BEGUN, seq: 9, state: 'done', ended_at: '2026-01-01T00:00:01Z' };
const report =
  (facts: RolloutFacts) =>
  (gateway: StartedGateway): Promise<Response> =>
    gateway.admin(`/admin/rollouts/${facts.id}/report`, toPost(facts));

/** What asks something of a rollout: of one that is not known, that is under way, and that is over. */
const asking = (action: string): readonly [string, ...Example[]] => {
  const target = `/admin/rollouts/${BEGUN.id}/${action}`;
  return [target, { target, before: report(BEGUN) }, { target, before: report(DONE) }];
};

/** Turns the history off. */
const withoutHistory = async (gateway: StartedGateway) => {
  gateway.writeConfig({ config: { gateway: { name: 'alone' }, history: 'off' } });
  await gateway.reload();
};

/** For each operation, examples that bring about every answer of its own that it documents. */
const EXAMPLES: Readonly<Record<string, readonly [string, ...Example[]]>> = {
  listConditions: ['/admin/conditions'],
  listReplicas: ['/admin/replicas'],
  showReplica: ['/admin/replicas/a', '/admin/replicas/nobody'],
  drainReplica: [
    '/admin/replicas/a/drain?wait=1s&reason=test',
    {
      target: '/admin/replicas/a/drain?unless_last=true',
      before: (gateway) => gateway.admin('/admin/replicas/a/undrain', { method: 'POST' }),
    },
    '/admin/replicas/a/drain?wait=x',
    '/admin/replicas/nobody/drain',
  ],
  undrainReplica: [
    '/admin/replicas/a/undrain',
    '/admin/replicas/a/undrain?reason=1&reason=2',
    '/admin/replicas/nobody/undrain',
  ],
  probeReplica: [
    '/admin/replicas/a/probe',
    '/admin/replicas/a/probe?completion=maybe',
    '/admin/replicas/nobody/probe',
  ],
  showVerdict: [
    '/admin/verdict?candidate=b&baseline=c',
    '/admin/verdict?candidate=',
    '/admin/verdict?candidate=nobody',
    '/admin/verdict?candidate=host:nowhere',
    '/admin/verdict?candidate=a&baseline=a',
    '/admin/verdict?candidate=a&baseline=b',
    '/admin/verdict?candidate=pod.label/version=v2',
  ],
  recordRolloutStep: [
    `/admin/rollout-steps?trace_id=${'a'.repeat(32)}&span_id=${'b'.repeat(16)}&step=rollout&start_ms=1&outcome=ok`,
    '/admin/rollout-steps',
  ],
  beginShadow: [
    '/admin/replicas/b/shadow?requests=5%25&for=1m',
    '/admin/replicas/b/shadow?for=x',
    '/admin/replicas/a/shadow',
    '/admin/replicas/nobody/shadow',
  ],
  endShadow: ['/admin/replicas/b/unshadow', '/admin/replicas/nobody/unshadow'],
  listRollouts: ['/admin/rollouts'],
  showRollout: [
    `/admin/rollouts/${BEGUN.id}`,
    { target: `/admin/rollouts/${BEGUN.id}`, before: report(BEGUN) },
  ],
  pauseRollout: asking('pause'),
  continueRollout: asking('continue'),
  abortRollout: asking('abort'),
  reportRollout: [
    `/admin/rollouts/${BEGUN.id}/report`,
    { target: `/admin/rollouts/${BEGUN.id}/report`, body: BEGUN },
    {
      target: '/admin/rollouts/0000000b/report',
      body: { ...BEGUN, id: '0000000b', started_at: '2026-01-01T00:00:09Z' },
    },
  ],
  listGateways: ['/admin/gateways'],
  forgetGateway: ['/admin/gateways/none/forget', '/admin/gateways/alone/forget'],
  reloadConfig: [
    '/admin/reload',
    { target: '/admin/reload', before: (gateway) => gateway.writeConfig('replicas: []\n') },
  ],
  createSignInLink: ['/admin/sign-in-links'],
  signIn: ['/admin/sign-in'],
  showStats: ['/admin/stats'],
  showMetrics: ['/metrics'],
  showOverview: ['/admin/overview', '/admin/overview?after=x'],
  listRecords: [
    '/admin/records',
    '/admin/records?since=1h',
    '/admin/records?limit=x',
    { target: '/admin/records?since=1h', before: withoutHistory },
  ],
  findRecord: [
    '/admin/records/none',
    {
      async find(gateway) {
        await (await gateway.chat()).text();
        return `/admin/records/${(await gateway.nextRecord()).trace_id}`;
      },
    },
  ],
  showUsage: [
    '/admin/usage?by=tenant&step=1h',
    '/admin/usage?since=soon',
    { target: '/admin/usage', before: withoutHistory },
  ],
  showTimeline: [
    '/admin/timeline',
    '/admin/timeline?since=soon',
    { target: '/admin/timeline', before: withoutHistory },
  ],
  listStatementRecords: [
    '/admin/statement-records?tenant=acme&since=1h',
    '/admin/statement-records',
    { target: '/admin/statement-records?tenant=acme&since=1h', before: withoutHistory },
  ],
  showStatementKey: ['/admin/statement-key'],
  describeApi: ['/openapi.json'],
};

const rows = ROUTES.filter((route) => !route.isPage);

describe('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1, and the one in docs/', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const served = await (await gateway.admin('/openapi.json')).text();

    const validator = new Validator();
    expect(await validator.validate(served)).toMatchObject({ valid: true });
    expect(validator.version).toBe('3.1');

    const documented = await readFile(new URL('../../../docs/openapi.yaml', import.meta.url), 'utf8');
    expect(documented, 'run node scripts/generate/openapi.ts').toBe(renderOpenApi());
    const other = new Validator();
    await other.validate(documented);
    expect(other.specification).toEqual(JSON.parse(served));
  });

  test('has every route of the table and no other, each with what its path and query may hold', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const { operations } = await OpenApiDocument.read(gateway);

    expect([...operations.keys()].toSorted()).toEqual(
      rows.map(({ method, path }) => `${method} ${path}`).toSorted(),
    );
    for (const { method, path, query } of rows) {
      const parameters = operations.get(`${method} ${path}`)?.parameters ?? [];
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((found) => `path ${found[1]}`);
      const inQuery = Object.keys(query.shape).map((name) => `query ${name}`);
      expect(parameters.map((each) => `${each.in} ${each.name}`)).toEqual([...inPath, ...inQuery]);
      for (const { description } of parameters) expect(description).toMatch(/\w/);
    }
    expect(new Set(rows.map(({ operationId }) => operationId)).size).toBe(rows.length);
  });
});

/** Statuses that a gateway alone does not give: test/e2e/fleet/ and admin-listener.test.ts show them. */
const SHOWN_ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  forgetGateway: ['200', '503'],
  drainReplica: ['503'],
  // test/gateway/discovery/pod-labels.test.ts
  showVerdict: ['503'],
  // test/gateway/admin/sign-in.test.ts
  signIn: ['200'],
  // test/gateway/admin/drain-token.test.ts
  undrainReplica: ['409'],
  // test/gateway/history/history-api.test.ts
  listRecords: ['503'],
  findRecord: ['503'],
  showUsage: ['503'],
  showTimeline: ['503'],
  listStatementRecords: ['503'],
  // test/statement/gateway.test.ts
  showStatementKey: ['200'],
};

/** No call from outside can bring about the failure that nobody thought of; the others are of bad bodies. */
const OF_ANY_CALL = ['408', '413', '500'];

function toPost(body: object): RequestInit {
  return { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
}

async function toTarget(example: Example, gateway: StartedGateway): Promise<string> {
  if (typeof example === 'string') return example;
  return 'find' in example ? await example.find(gateway) : example.target;
}

describe('every answer is as documented, and every documented answer is given:', () => {
  let replica: FakeReplica;
  let closed: StartedGateway;
  let document: OpenApiDocument;

  beforeAll(async () => {
    replica = await startFakeReplica({ name: 'a' });
    closed = await startGateway({ replicas: [replica], adminToken: null });
    await using open = await startGateway({ replicas: [replica] });
    document = await OpenApiDocument.read(open);
  });

  afterAll(async () => {
    await closed.close();
    await replica.close();
  });

  test.for(rows)('$method $path', async ({ method, path, operationId }) => {
    const others = ['b', 'c'].map((name) => ({ name, url: `${replica.url}/${name}`, models: ['n'] }));
    await using gateway = await startGateway({
      replicas: [replica, ...others],
      config: { gateway: { name: 'alone' }, history: {} },
    });
    const operation = document.operations.get(`${method} ${path}`);
    if (operation === undefined) return expect.unreachable('it is not documented');
    const examples = EXAMPLES[operationId] ?? expect.unreachable('it has no example above');

    const responses = [
      await fetch(gateway.adminUrl + examples[0], { method }),
      await fetch(closed.adminUrl + examples[0], { method }),
    ];
    for (const example of examples) {
      const { before, body } = typeof example === 'object' && 'target' in example ? example : {};
      await before?.(gateway);
      const init = body === undefined ? { method } : toPost(body);
      responses.push(await gateway.admin(await toTarget(example, gateway), init));
    }
    // Ten are too many; one more is forgiven each second, and the machine may be busy.
    const wrong = Array.from({ length: 25 }, async (_, count) => {
      const headers = { Authorization: `Bearer wrong-${count}` };
      return await fetch(gateway.adminUrl + examples[0], { method, headers });
    });
    responses.push(...(await Promise.all(wrong)));
    responses.push(await callUnderName(gateway.adminUrl + examples[0], { method, host: 'evil.example' }));
    for (const response of responses) await document.check(operation, response);

    const statuses = Object.keys(operation.responses).filter(
      (status) => !OF_ANY_CALL.includes(status) && !SHOWN_ELSEWHERE[operationId]?.includes(status),
    );
    expect(new Set(responses.map(({ status }) => String(status)))).toEqual(new Set(statuses));
  });
});
