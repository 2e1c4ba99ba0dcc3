import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { VerifyReport } from '#records';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import {
  type RealCollector,
  requireCollector,
  runCollector,
  startRealCollector,
  WITH_COLLECTOR,
} from '#testkit/servers/real-collector.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { invoke } from '../../cli/invoke.ts';
import { runConcurrently, sendMixed } from './collector-clients.ts';

const LEDGER = { interval: '1h' };

async function verify(...args: readonly string[]): Promise<VerifyReport> {
  return JSON.parse((await invoke(['verify', '--json', ...args])).stdout) as VerifyReport;
}

/** Runs a gateway with a ledger until its records, `count` requests, are at the collector. */
async function runGateway(collector: { readonly url: string }, count: number): Promise<void> {
  await using replica = await startSimulatedReplica();
  await using gateway = await startGateway({
    replicas: [{ name: replica.name, url: replica.url, engine: 'auto', models: 'auto' }],
    collector,
    config: { export: { batch_size: 16, interval: '10ms', ledger: LEDGER } },
  });
  await runConcurrently(count, 16, (index) => sendMixed(index, gateway));
  await gateway.waitForRecords(count);
}

/** The lines of the file of records, which is complete when the collector has stopped; without records, there is none. */
async function readRecords(collector: RealCollector): Promise<string[]> {
  await collector.stop();
  const text = await readFile(collector.recordsFile, 'utf8').catch(() => '');
  return text.split('\n').filter(Boolean);
}

/** An OTLP JSON body with one trace: a SERVER span and a CLIENT span. */
function toTrace(
  index: number,
  { ms = 1, isError = false, attributes = {} }: { ms?: number; isError?: boolean; attributes?: object } = {},
): object {
  const traceId = (index + 1).toString(16).padStart(32, '0');
  const end = 1_795_000_000_000_000_000n + BigInt(ms) * 1_000_000n;
  const toSpan = (spanId: string, kind: number, parentSpanId?: string) => ({
    traceId,
    spanId,
    kind,
    parentSpanId,
    name: `trace ${index}`,
    startTimeUnixNano: '1795000000000000000',
    endTimeUnixNano: String(end),
    status: { code: isError && parentSpanId === undefined ? 2 : 0 },
    attributes: Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: value } })),
  });
  const parent = `a${index.toString(16).padStart(15, '0')}`;
  const child = `b${index.toString(16).padStart(15, '0')}`;
  return { scopeSpans: [{ spans: [toSpan(parent, 2), toSpan(child, 3, parent)] }] };
}

async function send({ url }: RealCollector, resourceSpans: readonly object[]): Promise<void> {
  const response = await fetch(`${url}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ resourceSpans }),
  });
  expect(response.status).toBe(200);
}

describe('with a real OpenTelemetry Collector and the configuration that we ship,', WITH_COLLECTOR, () => {
  test('its file of records is proven though traces are sampled, and one deleted, doubled or changed is named', async (context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    await runGateway(collector, 300);
    const lines = await readRecords(collector);
    expect((await collector.sampled()).length).toBeLessThan(300);
    const report = await verify(collector.recordsFile);
    expect(report).toMatchObject({ proven: true, instances: [{ state: 'complete', records: 300 }] });

    const path = `${collector.recordsFile}.damaged`;
    const messages = lines.map((line) => JSON.parse(line));
    const spanOf = (seq: number) => {
      for (const { resourceSpans } of messages)
        for (const { scopeSpans } of resourceSpans)
          for (const { spans } of scopeSpans)
            for (const [index, { attributes }] of spans.entries())
              for (const { key, value } of attributes)
                if (key === 'gateway.seq' && Number(value.intValue) === seq) return { spans, index };
      throw new Error(`no record ${seq}`);
    };
    const deleted = spanOf(17);
    deleted.spans.splice(deleted.index, 1);
    const doubled = spanOf(123);
    doubled.spans.push(doubled.spans[doubled.index]);
    const changed = spanOf(300);
    const status = changed.spans[changed.index].attributes.find(
      ({ key }: { key: string }) => key === 'gateway.status',
    );
    status.value.intValue = '204';
    await writeFile(path, messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
    const damaged = await verify(path);
    expect(damaged.instances).toMatchObject([
      {
        state: 'incomplete',
        missing: { count: 1, ranges: ['17'] },
        doubled: { count: 1, ranges: ['123'] },
        changed: { count: 1, ranges: ['300'] },
      },
    ]);
    expect(damaged.instances[0]).not.toHaveProperty('unproven');
  });

  test('traces with errors and slow ones are kept whole, others are sampled', async (context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    const usual = Array.from({ length: 200 }, (_, index) => toTrace(index));
    const errors = Array.from({ length: 20 }, (_, index) => toTrace(1000 + index, { isError: true }));
    const slow = Array.from({ length: 20 }, (_, index) => toTrace(2000 + index, { ms: 10_001 }));
    await send(collector, [...usual, ...errors, ...slow]);
    const keptFrom = async (first: number) => {
      const names = (await collector.sampled()).map(({ name }) => Number(name.slice('trace '.length)));
      return names.filter((number) => number >= first && number < first + 1000).length;
    };
    await expect.poll(async () => [await keptFrom(1000), await keptFrom(2000)]).toEqual([40, 40]);
    await collector.stop();
    const kept = await keptFrom(0);
    expect(kept).toBeLessThan(400);
    expect(kept % 2).toBe(0);
  });

  test('text and keys of other programs are masked for the backend, and are not in the file of records', async (context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    const secrets = {
      'gen_ai.input.messages': 'canary prompt',
      'gen_ai.prompt': 'canary prompt',
      'gen_ai.prompt.0.content': 'canary prompt',
      'gen_ai.completion.0.content': 'canary answer',
      'input.value': 'canary prompt',
      'http.request.header.authorization': 'canary key',
      note: 'call me at canary@example.com with sk-canary0123456789abcdef',
    };
    const kept = {
      'gateway.tenant': 'acme',
      'gen_ai.usage.input_tokens': 'kept',
      'gen_ai.request.model': 'llama',
      'gen_ai.prompt.name': 'support-answer',
    };
    await send(collector, [toTrace(1, { isError: true, attributes: { ...secrets, ...kept } })]);
    await expect.poll(async () => (await collector.sampled()).length).toBe(2);
    const [span] = await collector.sampled();
    expect(JSON.stringify(span)).not.toContain('canary');
    expect(span?.attributes).toMatchObject(kept);
    expect(await readRecords(collector)).toEqual([]);
  });

  test('records are proven in files that the exporter has compressed', async (context) => {
    const binary = await requireCollector(context);
    const port = await findFreePort();
    const folder = await temporaryFolder();
    const path = join(folder, 'records.zst');
    {
      await using _collector = await runCollector(binary, {
        receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
        exporters: { file: { path, compression: 'zstd' } },
        service: {
          telemetry: { metrics: { level: 'none' } },
          pipelines: { traces: { receivers: ['otlp'], exporters: ['file'] } },
        },
      });
      await runGateway({ url: `http://127.0.0.1:${port}` }, 50);
    }
    expect(await verify(path)).toMatchObject({ proven: true, instances: [{ records: 50 }] });
  });
});
