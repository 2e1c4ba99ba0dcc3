import { resourceFromAttributes } from '@opentelemetry/resources';
import { expect, test } from 'vitest';
import { readOtlpOptions } from '#otel/collector';
import { createOtlpExporter } from '#otel/export';
import { encodeResourceSpans } from '#otel/otlp';
import { RECORD_FIELDS } from '#otel/record/registry';
import type { CollectedSpan } from '#testkit/fake-collector.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { requireCollector, startRealCollector, WITH_COLLECTOR } from '#testkit/servers/real-collector.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { runConcurrently, sendMixed } from './collector-clients.ts';

const nameOf = (field: string) => RECORD_FIELDS[field as keyof typeof RECORD_FIELDS].name;

const REQUESTS = 60;

const requestIdOf = ({ attributes }: CollectedSpan) => String(attributes['gateway.request_id']);

test.for(['http/protobuf', 'http/json'] as const)(
  'a real collector takes every record, operation, attempt and metric as %s, and finds in them what the gateway recorded',
  WITH_COLLECTOR,
  async (protocol, context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    await using replica = await startSimulatedReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      collector,
      config: { export: { protocol }, metrics: { otlp: true }, trace: { spans: 'attempts' } },
    });
    await runConcurrently(REQUESTS, 8, (index) => sendMixed(index, gateway));
    const records = await gateway.waitForRecords(REQUESTS);
    const attempts = records.reduce((sum, record) => sum + (record.attempts ?? 0), 0);
    // A body that is no JSON has no operation.
    const operations = records.filter(({ model }) => model !== undefined).length;
    const spans = await collector.untilSpans(REQUESTS + operations + attempts);
    expect(await gateway.stats()).toMatchObject({ exported: REQUESTS, rejected: 0, failed_calls: 0 });
    await gateway.close();

    const spanOf = new Map(spans.map((span) => [requestIdOf(span), span]));
    for (const { timings = {}, route_ruled_out = {}, ...record } of records) {
      const { attributes, types, resource } = spanOf.get(record.request_id) ?? {};
      const fields = [
        ...Object.entries(record).map(([field, value]) => [nameOf(field), value] as const),
        ...Object.entries(route_ruled_out).map(
          ([name, value]) => [`gateway.route.ruled_out.${name}`, value] as const,
        ),
        ...Object.entries(timings).map(([name, value]) => [`gateway.timings.${name}`, value] as const),
      ];
      expect(attributes).toMatchObject(Object.fromEntries(fields));
      expect(types).toMatchObject({ 'gateway.e2e_ms': 'doubleValue', 'gateway.status': 'intValue' });
      expect(resource).toMatchObject({ 'service.name': 'spangate' });
    }
    expect(gateway.logLines.filter((line) => line.includes('does not take metrics'))).toEqual([]);
    await collector.untilMetrics((text) => text.includes('gateway_requests_total'));
  },
);

test.for(['http/protobuf', 'http/json'] as const)(
  "a real collector's refusal of a batch is read from its answer to %s",
  WITH_COLLECTOR,
  async (protocol, context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    const options = await readOtlpOptions({ endpoint: collector.url, protocol }, createQuietLog());
    const broken = { before: Buffer.from('{"resourceSpans":7'), after: Buffer.alloc(0) };
    const resourceSpans = { ...encodeResourceSpans(resourceFromAttributes({})), json: broken };
    const exporter = createOtlpExporter(options, resourceSpans);
    const outcome = await exporter.exportBatch([Buffer.from('no span')], new AbortController().signal);
    exporter.close();
    expect(outcome).toMatchObject({ kind: 'answered', status: 400, message: expect.any(String) });
  },
);
