import { readFileSync } from 'node:fs';
import { createServer, request as sendRequest } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { EventLog } from '#testkit/event-log.ts';
import { answerJson, startFakeReplica } from '#testkit/fake-replica.ts';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { addresses, createFakeResolver } from '#testkit/servers/fake-resolver.ts';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import {
  promtool,
  type RealPrometheus,
  requirePrometheus,
  SHIPPED_PROMETHEUS_CONFIG,
  startPrometheus,
} from '#testkit/servers/real-prometheus.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const READ_TOKEN = 'read-token-of-prometheus';
const DASHBOARD = join(import.meta.dirname, '../../deploy/grafana/dashboards/spangate.json');

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
  readonly templating: { readonly list: readonly { readonly name: string; readonly allValue?: string }[] };
}

/** Every query of the dashboard, as Grafana would send it with all of each variable chosen. */
function readQueries(): readonly { readonly title: string; readonly promql: string }[] {
  const { panels, annotations, templating } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as Dashboard;
  const asked = [
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr }))),
    ...annotations.list.map(({ name, expr }) => ({ title: name, expr })),
  ];
  return asked.map(({ title, expr }) => ({
    title,
    promql: templating.list.reduce(
      (text, { name, allValue = '' }) => text.replaceAll(`$${name}`, allValue),
      expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '1m'),
    ),
  }));
}

/** This process may run for longer than the annotation of a start lasts. */
const MAY_BE_EMPTY: ReadonlySet<string> = new Set(['Starts of gateways']);

/** Stands between Prometheus and a gateway, and tells of each scrape: the event that a test can wait for. */
async function startScrapeCounter(gateway: StartedGateway) {
  const scrapes = new EventLog<number>();
  const server = createServer((incoming, outgoing) => {
    const upstream = sendRequest(gateway.adminUrl + incoming.url, { headers: incoming.headers });
    upstream.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(outgoing).on('close', () => scrapes.push(answer.statusCode ?? 0));
    });
    upstream.end();
  });
  const port = await listen(server);
  return {
    target: `127.0.0.1:${port}`,
    /** Resolves when what is counted now is stored: what the next whole scrape brings is, when the one after ends. */
    untilStored: () => scrapes.count(scrapes.items.length + 3),
    statuses: scrapes.items,
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

/** Requests of every kind that the dashboard tells apart; streams have gaps, prompts repeat. */
async function sendLoad(gateway: StartedGateway): Promise<void> {
  const messages = [{ role: 'user', content: 'A gateway counts what passes. '.repeat(60) }];
  const read = async (response: Promise<Response>) => void (await (await response).text());
  await Promise.all(
    ['acme', 'umbrella', '"quoted" \\ and\ttabbed'].flatMap((tenant) => {
      const init = { headers: { 'X-Tenant': tenant } };
      return [
        read(gateway.chat({ messages }, init)),
        read(gateway.chat({ messages, stream: true }, init)),
        read(gateway.chat({ messages, stream: true }, init)),
        read(gateway.chat({ model: 'nobody' }, init)),
        read(gateway.chat({ model: 'down' }, init)),
        read(gateway.chat({ model: 'wrong' }, init)),
        disconnect(gateway.chat({ model: 'slow', messages, stream: true }, init)),
      ];
    }),
  );
}

/** Leaves in the middle of the answer. */
async function disconnect(answer: Promise<Response>): Promise<void> {
  const reader = (await answer).body?.getReader();
  await reader?.read();
  await reader?.cancel();
}

const numberOf = async (prometheus: RealPrometheus, promql: string) =>
  Number((await prometheus.query(promql))[0]?.value[1]);

describe('a real Prometheus with the shipped configuration', () => {
  test('finds the configuration valid', async (context) => {
    await requirePrometheus(context);
    const said = await promtool(['check', 'config', '--syntax-only', SHIPPED_PROMETHEUS_CONFIG]);
    expect(said).toContain('is valid prometheus config file syntax');
  });

  test('scrapes a gateway under load: sums and exemplars are those of the records, and every query of the dashboard gives data', async (context) => {
    await requirePrometheus(context);
    await using a = await startSimulatedReplica({ name: 'a', gapMs: 2 });
    await using b = await startSimulatedReplica({ name: 'b', gapMs: 2 });
    const refusing = { name: 'refusing', url: `http://127.0.0.1:${await findFreePort()}`, models: ['down'] };
    await using slow = await startSimulatedReplica({
      name: 'slow',
      models: ['slow'],
      tokens: 1000,
      gapMs: 20,
    });
    await using wrong = await startFakeReplica({ name: 'wrong' });
    wrong.answer(answerJson({}, { status: 422 }));
    const resolver = createFakeResolver();
    resolver.point('pods.test', addresses('127.0.0.1'));
    await using gateway = await startGateway({
      services: [{ name: 'pods', dns: `http://pods.test:${await findFreePort()}`, models: ['down'] }],
      resolver,
      replicas: [
        { ...a, gpu_count: 2, gpu_hour_price: 2.5, max_inflight: 100 },
        b,
        { ...slow, models: ['slow'] },
        { ...wrong, models: ['wrong'] },
        refusing,
      ],
      readToken: READ_TOKEN,
      config: { health: { passive: false, active: false, frozen_after: '1h' } },
    });
    await using counter = await startScrapeCounter(gateway);
    await using prometheus = await startPrometheus(counter.target, READ_TOKEN);

    // A rate needs each series twice, and growing.
    for (let round = 0; round < 3; round += 1) {
      await sendLoad(gateway);
      await counter.untilStored();
    }
    const records = await gateway.waitForRecords(63);
    await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });
    await counter.untilStored();
    expect(new Set(counter.statuses)).toEqual(new Set([200]));

    const tokens = records.reduce((sum, { prompt_tokens = 0 }) => sum + prompt_tokens, 0);
    // A scrape that a busy machine delays beyond its time-out leaves no samples until the next one.
    const patience = { timeout: 90_000 };
    const untilSum = (promql: string) => expect.poll(() => numberOf(prometheus, promql), patience);
    await untilSum('sum(gateway_requests_total)').toBe(records.length);
    await untilSum('sum(http_server_request_duration_seconds_count)').toBe(records.length);
    await untilSum('sum(gateway_tokens_prompt_total)').toBe(tokens);

    // On a busy machine the scrapes during the rounds may have timed out, so that nothing was seen to grow.
    const findEmpty = async () => {
      await sendLoad(gateway);
      await counter.untilStored();
      const empty: string[] = [];
      for (const { title, promql } of readQueries()) {
        const samples = await prometheus.query(promql);
        const hasNumber = samples.some(({ value }) => Number.isFinite(Number(value[1])));
        if (!hasNumber && !MAY_BE_EMPTY.has(title)) empty.push(`${title}: ${promql}`);
      }
      return empty;
    };
    await expect.poll(findEmpty, patience).toEqual([]);

    const byTrace = new Map(gateway.records.map((record) => [record.trace_id, record]));
    for (const [metric, field] of [
      ['http_server_request_duration_seconds', 'e2e_ms'],
      ['gen_ai_server_request_duration_seconds', 'e2e_ms'],
      ['gateway_tenant_request_duration_seconds', 'e2e_ms'],
      ['gen_ai_server_time_to_first_token_seconds', 'ttft_ms'],
      ['gateway_tenant_time_to_first_token_seconds', 'ttft_ms'],
    ] as const) {
      const exemplars = await prometheus.queryExemplars(`${metric}_bucket`);
      expect(exemplars.length, metric).toBeGreaterThan(0);
      for (const { labels, value } of exemplars) {
        const record = byTrace.get(labels.trace_id ?? '');
        expect(Number(value)).toBeCloseTo((record?.[field] ?? Number.NaN) / 1000, 6);
      }
    }

    const text = await (await gateway.admin('/metrics')).text();
    expect(await promtool(['check', 'metrics'], text)).toBe('');
  });
});
