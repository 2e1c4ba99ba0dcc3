import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/encode/request-record.ts';
import type { ServedRequest } from '../../src/simulate/settings.ts';
import { type CollectedSpan, startFakeCollector } from '../support/fake-collector.ts';
import { type StartedSimulation, startSimulatedReplica } from '../support/simulated-replica.ts';
import { type StartedGateway, startGateway } from '../support/start-gateway.ts';
import { runConcurrently } from './collector-clients.ts';

const run = promisify(execFile);
const CONCURRENCY = 16;
const SENTENCE = 'A gateway stands between clients and replicas and counts what passes. ';

function clientOf(gateway: StartedGateway): OpenAI {
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
}

/** Sends one request of a mix of endpoints, plain and streamed, with and without usage asked for. */
async function sendMixed(index: number, gateway: StartedGateway, client: OpenAI): Promise<void> {
  const messages = [{ role: 'user' as const, content: SENTENCE.repeat(1 + (index % 30)) }];
  const max_tokens = 3 + (index % 9);
  switch (index % 10) {
    case 0:
    case 1:
      await client.chat.completions.create({ model: 'm', messages, max_tokens });
      return;
    case 2:
    case 3:
      await Array.fromAsync(await client.chat.completions.create({ model: 'm', messages, stream: true }));
      return;
    case 4:
      await Array.fromAsync(
        await client.chat.completions.create({
          model: 'm',
          messages,
          stream: true,
          stream_options: { include_usage: true },
        }),
      );
      return;
    case 5:
      await Array.fromAsync(
        await client.chat.completions.create({ model: 'm', messages, stream: true, n: 2, max_tokens }),
      );
      return;
    case 6:
      await client.completions.create({ model: 'm', prompt: SENTENCE, max_tokens });
      return;
    case 7:
      await Array.fromAsync(
        await client.completions.create({ model: 'm', prompt: [SENTENCE, 'x'], stream: true, max_tokens }),
      );
      return;
    case 8:
      await client.embeddings.create({ model: 'm', input: [SENTENCE, String(index)] });
      return;
    default:
      await sendByCurl(gateway, { model: 'm', messages, stream: index % 20 === 9 });
  }
}

async function sendByCurl(gateway: StartedGateway, body: object): Promise<void> {
  await run('curl', [
    '--silent',
    '--show-error',
    '--fail',
    '--no-buffer',
    '--header',
    'Content-Type: application/json',
    '--data',
    JSON.stringify(body),
    `${gateway.url}/v1/chat/completions`,
  ]);
}

async function startSimulations(
  settings: readonly Parameters<typeof startSimulatedReplica>[0][],
): Promise<StartedSimulation[] & AsyncDisposable> {
  const simulations = await Promise.all(settings.map((one) => startSimulatedReplica(one)));
  return Object.assign(simulations, {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(simulations.map(({ replica }) => replica.close()));
    },
  });
}

const configured = (simulations: readonly StartedSimulation[]) =>
  simulations.map(({ name, url }) => ({ name, url, models: 'auto' as const, engine: 'auto' }));

/** A record and what its replica says of the same request must be equal. */
function expectEqual(record: Readonly<RequestRecord>, served: ServedRequest | undefined): void {
  expect(served?.ending).toBe('complete');
  expect(record.trace_id).toBe(served?.traceparent?.split('-')[1]);
  expect(record).toMatchObject({
    endpoint: served?.endpoint,
    status: served?.status,
    stream: served?.stream,
    prompt_tokens: served?.usage?.promptTokens,
  });
  if (record.endpoint !== '/v1/embeddings') {
    expect(record.completion_tokens).toBe(served?.usage?.completionTokens);
    expect(record.cached_tokens ?? 0).toBe(served?.usage?.cachedTokens);
  }
  expect(record.error_type).toBeUndefined();
  expect(record.truncated).toBeUndefined();
}

/** The fields of a record that a span carries, back from its attributes. */
function recordOf({ attributes }: CollectedSpan): Record<string, unknown> {
  const fields = Object.entries(attributes).filter(([name]) => name.startsWith('gateway.'));
  return Object.fromEntries(fields.map(([name, value]) => [name.slice('gateway.'.length), value]));
}

/** Asks for the counters until they are as wanted: each answer is an event, nothing sleeps. */
async function untilStats(
  gateway: StartedGateway,
  isWanted: (stats: Readonly<Record<string, number>>) => boolean,
): Promise<Readonly<Record<string, number>>> {
  for (;;) {
    const stats = await gateway.stats();
    if (isWanted(stats)) return stats;
  }
}

describe('under load', () => {
  test('1,000 mixed requests leave 1,000 records, each equal to what its replica returned', async () => {
    await using simulations = await startSimulations([
      { name: 'vllm', engine: 'vllm' },
      { name: 'llamacpp', engine: 'llamacpp' },
      { name: 'openai', engine: 'openai' },
    ]);
    await using collector = await startFakeCollector();
    await using gateway = await startGateway({ replicas: configured(simulations), collector });
    const client = clientOf(gateway);

    await runConcurrently(1000, CONCURRENCY, (index) => sendMixed(index, gateway, client));

    const records = await gateway.waitForRecords(1000);
    const stats = await untilStats(gateway, ({ exported }) => exported === 1000);
    expect(stats).toMatchObject({ exported: 1000, dropped: 0, queued: 0, failed_calls: 0, recorded: 1000 });
    expect(records).toHaveLength(1000);

    const servedById = new Map(
      simulations.flatMap(({ served }) => served.items.map((one) => [one.requestId, one] as const)),
    );
    expect(servedById.size).toBe(1000);
    for (const record of records) expectEqual(record, servedById.get(record.request_id));

    const exported = new Map(collector.spans.map((span) => [span.attributes['gateway.request_id'], span]));
    expect(exported.size).toBe(1000);
    for (const record of records) {
      const span = exported.get(record.request_id);
      if (span === undefined) throw new Error('a record was not exported');
      expect(recordOf(span)).toMatchObject(withoutTimings(record));
    }
    const counts = simulations.map(({ served }) => served.items.length);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });

  test('a collector that is away fails no request, and gets every record when it is back', async () => {
    await using simulations = await startSimulations([{ name: 'a' }, { name: 'b' }]);
    await using collector = await startFakeCollector();
    await using gateway = await startGateway({
      replicas: configured(simulations),
      collector,
      config: { export: { retry: { initial: '1ms', max: '5ms' } } },
    });
    const send = async () => {
      const response = await gateway.chat({ max_tokens: 2 });
      expect(response.status).toBe(200);
      await response.text();
    };

    await runConcurrently(200, CONCURRENCY, send);
    collector.answerAlways({ cut: true });
    await runConcurrently(400, CONCURRENCY, send);
    const away = await untilStats(gateway, ({ failed_calls = 0 }) => failed_calls >= 3);
    expect(away.queued).toBeGreaterThan(0);
    collector.answerAlways({});
    await runConcurrently(200, CONCURRENCY, send);

    const back = await untilStats(gateway, ({ exported }) => exported === 800);
    expect(back).toMatchObject({ dropped: 0, rejected: 0, queued: 0, recorded: 800 });
    const ids = new Set(collector.spans.map((span) => span.attributes['gateway.request_id']));
    expect(ids).toEqual(new Set(gateway.records.map((record) => record.request_id)));
  });

  test('a replica that is killed costs only the requests that had begun on it', async () => {
    await using simulations = await startSimulations(
      ['a', 'b', 'c'].map((name) => ({ name, ttftMs: 2, gapMs: 1 })),
    );
    const [killed] = simulations;
    await using gateway = await startGateway({ replicas: configured(simulations) });
    const dead = Promise.withResolvers<void>();
    const idsAfter = new Set<string>();
    const statusesAfter: number[] = [];

    await runConcurrently(600, CONCURRENCY, async (index) => {
      if (index === 200) {
        await killed?.replica.close();
        dead.resolve();
      }
      const beginsAfter = index >= 250;
      if (beginsAfter) await dead.promise;
      const response = await gateway.chat({ stream: true });
      await response.text();
      if (!beginsAfter) return;
      statusesAfter.push(response.status);
      idsAfter.add(response.headers.get('x-request-id') ?? '');
    });

    const records = await gateway.waitForRecords(600);
    const failed = records.filter(({ status, truncated }) => status !== 200 || truncated === true);
    expect(failed.every(({ replica }) => replica === 'a')).toBe(true);
    expect(failed.length).toBeLessThanOrEqual(CONCURRENCY);
    expect(statusesAfter).toEqual(Array.from({ length: 350 }, () => 200));
    expect(failed.filter(({ request_id }) => idsAfter.has(request_id))).toEqual([]);
  });

  test('a replica that is drained gets nothing new once drain has answered, and finishes its streams', async () => {
    await using simulations = await startSimulations(
      ['a', 'b'].map((name) => ({ name, ttftMs: 2, gapMs: 1 })),
    );
    await using gateway = await startGateway({ replicas: configured(simulations) });
    const drained = Promise.withResolvers<void>();
    const idsAfter = new Set<string>();

    await runConcurrently(400, CONCURRENCY, async (index) => {
      if (index === 150) {
        await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
        drained.resolve();
      }
      const beginsAfter = index >= 200;
      if (beginsAfter) await drained.promise;
      const response = await gateway.chat({ stream: true });
      const text = await response.text();
      expect(text).toMatch(/data: \[DONE\]\n\n$/);
      if (beginsAfter) idsAfter.add(response.headers.get('x-request-id') ?? '');
    });

    const records = await gateway.waitForRecords(400);
    expect(records.every(({ status, truncated }) => status === 200 && truncated === undefined)).toBe(true);
    expect(idsAfter.size).toBe(200);
    const onDrained = records.filter(({ replica }) => replica === 'a').map(({ request_id }) => request_id);
    expect(onDrained.length).toBeGreaterThan(50);
    expect(onDrained.filter((id) => idsAfter.has(id))).toEqual([]);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0, safe_to_stop: true }, { inflight: 0 }]);
  });
});

/** The record without its engine's own numbers, which are attributes of their own. */
function withoutTimings({ timings: _, ...record }: Readonly<RequestRecord>): Partial<RequestRecord> {
  return record;
}
