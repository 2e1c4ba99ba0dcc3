import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { type CollectedSpan, startFakeCollector } from '#testkit/fake-collector.ts';
import { refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

/** From one service to another, and how many of the requests failed. */
type Edges = Readonly<Record<string, { readonly requests: number; readonly failed: number }>>;

/**
 * The service graph that Grafana Tempo makes of the spans of one service, none of whose peers sends any: grafana/tempo
 * ad33aa8fafc41a4ea58519f7b7a88b1aa1383224, 2026-08-21, modules/generator/processor/servicegraphs/servicegraphs.go. A
 * CLIENT span without a SERVER span below it is an edge to its `peer.service`, if it has one; a SERVER span without a
 * parent is one from `user`.
 */
function toServiceGraph(spans: readonly CollectedSpan[], service: string): Edges {
  const edges: Record<string, { requests: number; failed: number }> = {};
  for (const { kind, parentSpanId = '', status, attributes } of spans) {
    const isRoot = kind === SpanKind.SERVER + 1 && parentSpanId === '';
    const peer = kind === SpanKind.CLIENT + 1 ? attributes['peer.service'] : undefined;
    if (!isRoot && peer === undefined) continue;
    const name = isRoot ? `user → ${service}` : `${service} → ${peer}`;
    const { requests, failed } = edges[name] ?? { requests: 0, failed: 0 };
    const isFailed = status.code === SpanStatusCode.ERROR;
    edges[name] = { requests: requests + 1, failed: failed + (isFailed ? 1 : 0) };
  }
  return edges;
}

test.each([
  ['server', { 'user → spangate': { requests: 1, failed: 0 } }],
  [
    'operation',
    { 'user → spangate': { requests: 1, failed: 0 }, 'spangate → b': { requests: 1, failed: 0 } },
  ],
  [
    'attempts',
    {
      'user → spangate': { requests: 1, failed: 0 },
      'spangate → a': { requests: 1, failed: 1 },
      'spangate → b': { requests: 1, failed: 0 },
    },
  ],
] as const)(
  'with trace.spans: %s, Tempo’s service graph of a retried request has each replica once at most',
  async (spans, wanted) => {
    await using collector = await startFakeCollector();
    await using b = await startFakeReplica({ name: 'b' });
    const replicas = [{ name: 'a', url: refusedUrlBeside(b) }, b];
    await using gateway = await startGateway({ replicas, collector, config: { trace: { spans } } });

    await (await gateway.chat()).arrayBuffer();

    await collector.waitFor((seen) => seen.spans.some(({ kind }) => kind === SpanKind.SERVER + 1));
    expect(toServiceGraph(collector.spans, 'spangate')).toEqual(wanted);
  },
);
