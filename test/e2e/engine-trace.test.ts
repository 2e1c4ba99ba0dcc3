import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { type Context, ROOT_CONTEXT, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import { requireCollector, startRealCollector, WITH_COLLECTOR } from '#testkit/servers/real-collector.ts';
import { startGateway } from '#testkit/start-gateway.ts';

/** What vLLM answers with `--enable-per-request-metrics` (vLLM documentation, "Per-Request Metrics"). */
const METRICS = {
  time_to_first_token_ms: 85.25,
  generation_time_ms: 1240.5,
  queue_time_ms: 12.5,
  mean_itl_ms: 9.5,
  tokens_per_second: 103.25,
};
const USAGE = { prompt_tokens: 42, completion_tokens: 128, total_tokens: 170 };

/** The same on the span that vLLM ends with a request. */
const ENGINE_LATENCY = {
  'gen_ai.latency.time_in_queue': 0.0125,
  'gen_ai.latency.time_in_model_prefill': 0.08525,
  'gen_ai.latency.time_in_model_decode': 1.2405,
};

/** A program with an SDK of its own that exports to the collector. */
function createTracer(service: string, collector: string) {
  const exporter = new OTLPTraceExporter({ url: `${collector}/v1/traces` });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': service }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  return { tracer: provider.getTracer(service), flush: () => provider.forceFlush() };
}

/** An engine that answers as vLLM does, and exports the span `llm_request` in the trace of the request. */
async function startEngine(tracer: Tracer) {
  const server = createServer((incoming, outgoing) => {
    // The gateway asks for its version and its models, too.
    if (incoming.method !== 'POST') return void incoming.resume().once('end', () => outgoing.end('{}'));
    return void incoming.resume().once('end', () => {
      const span = tracer.startSpan(
        'llm_request',
        { kind: SpanKind.SERVER },
        toContext(String(incoming.headers.traceparent)),
      );
      span.setAttributes({ ...ENGINE_LATENCY, 'gen_ai.usage.prompt_tokens': USAGE.prompt_tokens });
      span.end();
      const message = { role: 'assistant', content: 'Hello' };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      outgoing.setHeader('content-type', 'application/json');
      const answer = { id: 'chatcmpl-1', object: 'chat.completion', model: 'm', choices };
      outgoing.end(JSON.stringify({ ...answer, usage: USAGE, metrics: METRICS }));
    });
  });
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => closeServer(server) };
}

function toContext(traceparent: string): Context {
  const parent = parseTraceParent(traceparent);
  return parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true });
}

test.for([
  ['server', ['chat', 'POST /v1/chat/completions', 'llm_request']],
  ['operation', ['chat', 'POST /v1/chat/completions', 'chat m', 'llm_request']],
  ['attempts', ['chat', 'POST /v1/chat/completions', 'chat m', 'POST', 'llm_request']],
] as const)(
  'with trace.spans: %s, client, gateway and engine are one trace in a real collector, with the engine’s latency twice',
  WITH_COLLECTOR,
  async ([spans, names], context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    const client = createTracer('client', collector.url);
    const engine = createTracer('vllm', collector.url);
    await using replica = await startEngine(engine.tracer);
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, engine: 'vllm' }],
      collector,
      config: { trace: { incoming: 'continue', spans } },
    });

    const span = client.tracer.startSpan('chat', { kind: SpanKind.CLIENT }, ROOT_CONTEXT);
    const { traceId, spanId } = span.spanContext();
    const headers = {
      traceparent: `00-${traceId}-${spanId}-01`,
      tracestate: `vendor=${randomBytes(2).toString('hex')}`,
    };
    await (await gateway.chat({}, { headers })).arrayBuffer();
    span.end();
    await Promise.all([client.flush(), engine.flush()]);

    const all = await collector.untilSpans(names.length);
    // Each span is the parent of the next.
    const chain = [all.find(({ parentSpanId }) => parentSpanId === undefined)];
    for (let at = chain[0]; at !== undefined; at = all.find((each) => each.parentSpanId === at?.spanId)) {
      if (at !== chain[0]) chain.push(at);
    }
    expect(chain.map((each) => each?.name)).toEqual(names);
    expect(new Set(chain.map((each) => each?.traceId))).toEqual(new Set([traceId]));
    const told = chain.filter((each) => each?.attributes['gen_ai.latency.time_in_queue'] !== undefined);
    expect(told).toHaveLength(2);
    for (const each of told) expect(each?.attributes).toMatchObject(ENGINE_LATENCY);
    expect(chain[1]?.attributes).toMatchObject({ 'gateway.timings.queue_time_ms': METRICS.queue_time_ms });
  },
);
