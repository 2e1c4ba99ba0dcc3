import type { RequestRecord } from '#otel/record/registry';
import { startProgram } from '#testkit/programs/program.ts';
import { createEventRelay, createJsonTap, endpointAt } from '#testkit/reading/response-reading.ts';
import { RecordProcessor } from '../../otel/span/record-processor.ts';
import { createRequestSpans } from '../../otel/span/request-span.ts';
import { RandomIds } from '../../otel/span/trace-ids.ts';
import { createTracer } from '../../otel/span/tracer.ts';
import { createPrefixHasher } from '../../src/proxy/record/prefix-hashes.ts';
import { readRequestFacts } from '../../src/proxy/request/inspection/request-facts.ts';
import { describeRequestText } from '../../src/proxy/request/inspection/request-text.ts';

const USAGE = `npm run bench:pieces
  Measures single steps of a request in µs of CPU: the fastest of several rounds, with all data in the processor's
  caches. In a loaded gateway each step costs two to three times as much.`;

startProgram(USAGE, {});

const ROUNDS = 7;
const CALLS = 50_000;

function measure(name: string, piece: () => unknown, calls = CALLS): void {
  for (let call = 0; call < calls; call++) piece();
  let leastUs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < calls; call++) piece();
    const { user, system } = process.cpuUsage(before);
    leastUs = Math.min(leastUs, (user + system) / calls);
  }
  console.log(`${leastUs.toFixed(2).padStart(7)} µs  ${name}`);
}

const CHAT = endpointAt('/v1/chat/completions');
function toBody(content: string): Buffer {
  const messages = [
    { role: 'system', content: 'You are helpful.' },
    { role: 'user', content },
  ];
  return Buffer.from(JSON.stringify({ model: 'm', max_tokens: 40, messages }));
}
const body = toBody('lorem ipsum '.repeat(166));
const facts = readRequestFacts(body, CHAT);
measure('read a request of 2,000 characters: model, stream, limits', () => readRequestFacts(body, CHAT));

const hasher = createPrefixHasher({ salt: Buffer.from('a'.repeat(64)), blockChars: 512, maxBlocks: 128 });
measure('count and hash its text', () => describeRequestText(body, facts, CHAT, hasher));

const code = toBody('a = "b";\n  if (x) {\n'.repeat(5000));
const codeFacts = readRequestFacts(code, CHAT);
measure('read 100,000 characters of code', () => readRequestFacts(code, CHAT), CALLS / 100);
measure('count and hash them', () => describeRequestText(code, codeFacts, CHAT, hasher), CALLS / 100);

const usage = { prompt_tokens: 500, completion_tokens: 40, total_tokens: 540 };
const choice = { index: 0, message: { role: 'assistant', content: 'lorem ' }, finish_reason: 'stop' };
const answer = Buffer.from(
  JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', model: 'm', choices: [choice], usage }),
);
measure('read a JSON answer: usage, finish reasons', () => {
  const tap = createJsonTap();
  tap.push(answer);
  tap.fill({});
});

const delta = { index: 0, delta: { content: 'lorem' }, logprobs: null, finish_reason: null };
const event = Buffer.from(
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'm', choices: [delta] })}\n\n`,
);
let relay = createEventRelay().events;
let events = 0;
measure('read one event of a stream', () => {
  if (++events % 1000 === 0) relay = createEventRelay().events;
  relay.push(event, events);
});

const consumer = {
  number: () => undefined,
  begin: () => undefined,
  discard: () => undefined,
  consume: () => undefined,
};
const spanProcessor = new RecordProcessor(consumer, { info() {}, warn() {}, error() {} });
const startSpan = createRequestSpans(createTracer(spanProcessor, new RandomIds()), {
  depth: 'server',
  genAi: 'pinned',
  number: () => undefined,
});
measure('a span with its record, encoded', () => {
  const span = startSpan({ method: 'POST', route: CHAT.path });
  span.end(toRecord(span.traceId), { scheme: 'http', serverAddress: '127.0.0.1', serverPort: 8080 });
});

/** A record whose varying fields vary. */
function toRecord(traceId: string): RequestRecord {
  const id = traceId.slice(16);
  return {
    request_id: `0e8d5b3c-38d7-4c1b-8b1d-${id.slice(4)}`,
    trace_id: traceId,
    ts: '2026-11-21T08:00:00.123Z',
    endpoint: CHAT.path,
    replica: 'replica-0',
    model: 'm',
    tenant: 'acme',
    prompt_tokens: 500,
    completion_tokens: 40,
    e2e_ms: Math.random() * 100,
    status: 200,
    stream: false,
    max_tokens: 40,
    prompt_chars: 2008,
    prefix_hashes: [id, traceId.slice(0, 16)],
    finish_reasons: ['stop'],
    attempts: 1,
  };
}
