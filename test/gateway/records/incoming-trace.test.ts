import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CollectedSpan, type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { answerJson, type FakeReplica, refusedUrlBeside, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const CONTEXT = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'vendor=a, other=b' };
const CHAT = '/v1/chat/completions';

let collector: FakeCollector;
let replica: FakeReplica;
beforeEach(async () => {
  [collector, replica] = await Promise.all([startFakeCollector(), startFakeReplica({ name: 'a' })]);
});
afterEach(async () => {
  await Promise.all([collector.close(), replica.close()]);
});

const start = (trace: object, config: StartGatewayOptions['config'] = {}): Promise<StartedGateway> =>
  startGateway({
    replicas: [replica],
    collector,
    config: { trace: { incoming: 'continue', ...trace }, ...config },
  });

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Sends a request and returns its status. */
async function send(
  gateway: StartedGateway,
  headers: Headers = CONTEXT,
  { path = CHAT, method = 'POST', model = 'm', localAddress = '127.0.0.1' } = {},
): Promise<number | undefined> {
  const options = { method, agent: false as const, localAddress, headers: headers as Record<string, string> };
  const sent = request(`${gateway.url}${path}`, options);
  sent.end(method === 'POST' ? JSON.stringify({ model, messages: [] }) : undefined);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

async function untilSpan(): Promise<CollectedSpan> {
  await collector.waitFor(({ spans }) => spans.length > 0);
  const [span] = collector.spans;
  if (span === undefined) throw new Error('no span');
  return span;
}

/** The trace context that the replica got. */
async function receivedContext() {
  const received = await replica.nextRequest();
  const [traceparent] = received.header('traceparent');
  return { traceparent, tracestate: received.header('tracestate') };
}

describe('with trace.incoming: continue', () => {
  test('the span is a child of the client’s, and the trace goes on upstream with its state', async () => {
    await using gateway = await start({});
    await send(gateway);

    const span = await untilSpan();
    expect(span).toMatchObject({
      traceId: TRACE,
      parentSpanId: SPAN,
      traceState: 'vendor=a,other=b',
      links: [],
    });
    // OTLP: the parent is known to be remote.
    expect(span.flags & 0x300).toBe(0x300);
    expect(await gateway.nextRecord()).toMatchObject({ trace_id: TRACE });
    expect(await receivedContext()).toEqual({
      traceparent: `00-${TRACE}-${span.spanId}-01`,
      tracestate: ['vendor=a,other=b'],
    });
  });

  test.each([
    ['00', '01'],
    ['01', '01'],
    ['02', '03'],
    ['03', '03'],
    ['ff', '03'],
  ])('flags %s of the client leave a record, and go upstream as %s', async (flags, upstream) => {
    await using gateway = await start({});
    await send(gateway, { traceparent: `00-${TRACE}-${SPAN}-${flags}` });

    const span = await untilSpan();
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: SPAN });
    expect(await receivedContext()).toEqual({
      traceparent: `00-${TRACE}-${span.spanId}-${upstream}`,
      tracestate: [],
    });
  });

  test.each<[string, Headers]>([
    ['malformed', { ...CONTEXT, traceparent: `00-${TRACE}-${SPAN}-01-x` }],
    ['sent twice', { ...CONTEXT, traceparent: [CONTEXT.traceparent, CONTEXT.traceparent] }],
    ['of zeros', { ...CONTEXT, traceparent: `00-${'0'.repeat(32)}-${SPAN}-01` }],
    ['absent', { tracestate: 'vendor=a' }],
  ])('a traceparent that is %s starts a new trace without state', async (_, headers) => {
    await using gateway = await start({});
    await send(gateway, headers);

    const span = await untilSpan();
    expect(span).toMatchObject({ parentSpanId: undefined, traceState: undefined, links: [] });
    expect(span.traceId).not.toBe(TRACE);
    expect((await receivedContext()).tracestate).toEqual([]);
  });

  test('several tracestate fields are one, and one that is not valid is left out', async () => {
    await using gateway = await start({});
    await send(gateway, { ...CONTEXT, tracestate: ['a=1', 'b=2'] });
    await send(gateway, { ...CONTEXT, tracestate: 'a=1, Not Valid' });

    expect((await receivedContext()).tracestate).toEqual(['a=1,b=2']);
    const second = await receivedContext();
    expect(second.tracestate).toEqual([]);
    expect(second.traceparent?.slice(3, 35)).toBe(TRACE);
  });

  test.each([
    ['a refused key', { clients: [{ name: 'c', key_sha256: 'a'.repeat(64) }] }, 'm', 401],
    ['an unknown model', {}, 'unknown', 404],
  ])('%s leaves its record in the client’s trace', async (_, config, model, status) => {
    await using gateway = await start({}, config);
    expect(await send(gateway, CONTEXT, { model })).toBe(status);

    expect(await untilSpan()).toMatchObject({ traceId: TRACE, parentSpanId: SPAN });
  });

  test('every span below it is in the client’s trace, and attempts send its state', async () => {
    await using gateway = await startGateway({
      replicas: [{ name: 'down', url: refusedUrlBeside(replica) }, replica],
      collector,
      config: { trace: { incoming: 'continue', spans: 'attempts' } },
    });
    await send(gateway);

    await collector.waitFor(({ spans }) => spans.length === 4);
    expect(collector.spans.map(({ traceId, traceState }) => [traceId, traceState])).toEqual(
      Array.from({ length: 4 }, () => [TRACE, 'vendor=a,other=b']),
    );
    const { traceparent, tracestate } = await receivedContext();
    expect(tracestate).toEqual(['vendor=a,other=b']);
    expect(traceparent).toBe(`00-${TRACE}-${collector.spans[3]?.spanId}-01`);
  });

  test('a request without a record sends the client’s context on as it is', async () => {
    replica.answerOnce(answerJson({ object: 'list', data: [] }));
    await using gateway = await start({});
    await send(
      gateway,
      { ...CONTEXT, traceparent: `00-${TRACE}-${SPAN}-00` },
      { path: '/v1/models', method: 'GET' },
    );

    expect(await receivedContext()).toEqual({
      traceparent: `00-${TRACE}-${SPAN}-00`,
      tracestate: ['vendor=a,other=b'],
    });
  });

  test('only trusted proxies continue their traces if the list is set; others get a link', async () => {
    await using gateway = await start({}, { gateway: { trusted_proxies: ['127.0.0.1'] } });
    await send(gateway, CONTEXT, { localAddress: '127.0.0.2' });
    await send(gateway, CONTEXT);

    await collector.waitFor(({ spans }) => spans.length === 2);
    const [linked, continued] = collector.spans;
    expect(linked).toMatchObject({ parentSpanId: undefined, links: [{ traceId: TRACE, spanId: SPAN }] });
    expect(linked?.traceId).not.toBe(TRACE);
    expect((await receivedContext()).tracestate).toEqual([]);
    expect(continued).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, links: [] });
  });
});

describe.each(['link', 'ignore'])('with trace.incoming: %s', (incoming) => {
  test('neither the id nor the state of the client’s trace goes upstream', async () => {
    await using gateway = await start({ incoming });
    await send(gateway);

    const span = await untilSpan();
    expect(span.traceId).not.toBe(TRACE);
    expect(span.links).toHaveLength(incoming === 'link' ? 1 : 0);
    expect(await receivedContext()).toEqual({
      traceparent: `00-${span.traceId}-${span.spanId}-01`,
      tracestate: [],
    });
  });
});
