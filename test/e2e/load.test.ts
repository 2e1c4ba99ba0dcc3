import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { type CollectedSpan, startFakeCollector } from '#testkit/fake-collector.ts';
import { runs } from '#testkit/runs.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import type { ServedRequest } from '../../src/simulate/settings.ts';
import { runConcurrently } from './collector/collector-clients.ts';
import { CONCURRENCY, configured, startSimulations, untilStats } from './simulations.ts';

/** How many requests a test sends. */
const REQUESTS = runs(1_000);
const run = promisify(execFile);
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
      // Each curl is a process of its own: only some of the requests are worth one.
      if (index % 50 < 10) await sendByCurl(gateway, { model: 'm', messages, stream: index % 100 === 9 });
      else await client.chat.completions.create({ model: 'm', messages });
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
  return Object.fromEntries(
    fields.map(([name, value]) => [name.slice('gateway.'.length).replaceAll('.', '_'), value]),
  );
}

describe('under load', () => {
  test(`${REQUESTS} mixed requests leave as many records, each equal to what its replica returned`, async () => {
    await using simulations = await startSimulations([
      { name: 'vllm', engine: 'vllm' },
      { name: 'llamacpp', engine: 'llamacpp' },
      { name: 'openai', engine: 'openai' },
    ]);
    await using collector = await startFakeCollector();
    await using gateway = await startGateway({ replicas: configured(simulations), collector });
    const client = clientOf(gateway);

    await runConcurrently(REQUESTS, CONCURRENCY, (index) => sendMixed(index, gateway, client));

    const records = await gateway.waitForRecords(REQUESTS);
    const stats = await untilStats(gateway, ({ exported }) => exported === REQUESTS);
    expect(stats).toMatchObject({
      exported: REQUESTS,
      dropped: 0,
      queued: 0,
      failed_calls: 0,
      recorded: REQUESTS,
    });
    expect(records).toHaveLength(REQUESTS);

    const servedById = new Map(
      simulations.flatMap(({ served }) => served.items.map((one) => [one.requestId, one] as const)),
    );
    expect(servedById.size).toBe(REQUESTS);
    for (const record of records) expectEqual(record, servedById.get(record.request_id));

    const exported = new Map(collector.spans.map((span) => [span.attributes['gateway.request_id'], span]));
    expect(exported.size).toBe(REQUESTS);
    for (const record of records) {
      const span = exported.get(record.request_id);
      if (span === undefined) throw new Error('a record was not exported');
      expect(recordOf(span)).toMatchObject(withoutTimings(record));
    }
    const counts = simulations.map(({ served }) => served.items.length);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });
});

/** The record without its engine's own numbers, which are attributes of their own. */
function withoutTimings({ timings: _, ...record }: Readonly<RequestRecord>): Partial<RequestRecord> {
  return record;
}
