import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { type CollectedSpan, readSpans, startFakeCollector } from '#testkit/fake-collector.ts';
import {
  requireCollector,
  runCollector,
  startRealCollector,
  WITH_COLLECTOR,
} from '#testkit/servers/real-collector.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { runConcurrently, sendMixed } from './collector-clients.ts';

const run = promisify(execFile);
const DOCUMENT = join(import.meta.dirname, '../../../docs/operations.md');

/** The command that the document gives operators. */
async function readReplayCommand(): Promise<string> {
  const [command] = /^cat records.*curl.*$/m.exec(await readFile(DOCUMENT, 'utf8')) ?? [];
  if (command === undefined) throw new Error('docs/operations.md has no command with curl');
  return command;
}

/** What must survive the way through a file and a collector, in an order of its own. */
const toComparable = (spans: readonly CollectedSpan[]) =>
  spans
    .map(
      ({ name, traceId, spanId, kind, startTimeUnixNano, endTimeUnixNano, attributes, types, resource }) => ({
        name,
        traceId,
        spanId,
        kind,
        startTimeUnixNano,
        endTimeUnixNano,
        attributes,
        types,
        resource,
      }),
    )
    .toSorted((one, other) => one.spanId.localeCompare(other.spanId));

/** Sends 100 mixed requests and returns the lines of the file once all their records are in it. */
async function writeHundredRecords(gateway: StartedGateway): Promise<readonly string[]> {
  await runConcurrently(100, 8, (index) => sendMixed(index, gateway));
  await gateway.waitForRecords(100);
  while ((await gateway.stats()).queued !== 0);
  return (await readFile(join(gateway.stateDir, 'records.jsonl'), 'utf8')).trimEnd().split('\n');
}

test(
  'the documented command brings a file of records into a collector, span for span',
  WITH_COLLECTOR,
  async (context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    await using replica = await startSimulatedReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { export: { batch_size: 16, interval: '10ms' } },
    });
    const lines = await writeHundredRecords(gateway);

    await run('sh', ['-c', await readReplayCommand()], {
      cwd: gateway.stateDir,
      env: { PATH: process.env.PATH, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    });

    const written = lines.flatMap(readSpans);
    expect(lines.length).toBeGreaterThan(5);
    expect(written).toHaveLength(100);
    expect(toComparable(await collector.untilSpans(100))).toEqual(toComparable(written));
  },
);

test(
  "a collector's otlpjsonfile receiver reads a file of records as it is",
  WITH_COLLECTOR,
  async (context) => {
    const binary = await requireCollector(context, 'manifest-jsonfile.yaml');
    await using replica = await startSimulatedReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { export: { batch_size: 16, interval: '10ms' } },
    });
    const written = (await writeHundredRecords(gateway)).flatMap(readSpans);
    const file = join(gateway.stateDir, 'records.jsonl');
    await using sink = await startFakeCollector();

    await using _ = await runCollector(binary, {
      receivers: { otlpjsonfile: { include: [file], start_at: 'beginning', include_file_name: false } },
      exporters: { otlphttp: { endpoint: sink.url, encoding: 'json' } },
      service: {
        telemetry: { metrics: { level: 'none' } },
        pipelines: { traces: { receivers: ['otlpjsonfile'], exporters: ['otlphttp'] } },
      },
    });
    await sink.waitFor(() => sink.spans.length >= written.length);

    expect(written).toHaveLength(100);
    expect(toComparable(sink.spans)).toEqual(toComparable(written));
  },
);
