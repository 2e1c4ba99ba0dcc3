import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeReplica, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes } from '#testkit/raw-http.ts';
import { runs } from '#testkit/runs.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { RECORDED_ENDPOINTS } from '../../../src/proxy/endpoints/table.ts';

const ENDPOINTS = [
  ...['responses', 'messages', 'rerank', 'score', 'classify', 'pooling', 'tokenize', 'detokenize'],
];
/** Endpoints whose requests are JSON. */
const PATHS = RECORDED_ENDPOINTS.map(({ path }) => path).filter((path) => !path.startsWith('/v1/audio/'));
const MODEL = '"llama-3.3-70b"';
const ALIAS = '"gpt-4o"';
/** Stands for the name of the model, where it is the model's. */
const NAME = '\u0000';

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica();
  gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, models: ['llama-3.3-70b'] }],
    config: { endpoints: ENDPOINTS, aliases: { 'gpt-4o': 'llama-3.3-70b' } },
  });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

const space = fc.constantFrom('', ' ', '\n\t', '\r\n');
const value = fc.oneof(
  fc.json({ maxDepth: 3 }),
  fc.constantFrom('12345678901234567890', '-0.0E+7', '"\\u0041\\/\\ud83d"', '{"a":1,"a":2}', MODEL),
  fc.constantFrom(`{"model":${MODEL}}`, `"\\"model\\":\\"llama-3.3-70b\\""`, `[{"model":${MODEL}}]`),
);
const member = fc
  .tuple(fc.constantFrom('a', 'choices', 'usage', 'text', 'n', 'user', '\\u0062'), value, space)
  .map(([key, text, gap]) => `${gap}"${key}"${gap}:${gap}${text}`);
const members = fc.array(member, { maxLength: 5 });
/** A JSON object that names its model at some place. */
const namedObject = fc
  .tuple(members, members, space, fc.constantFrom('model', 'mod\\u0065l'))
  .map(
    ([before, after, gap, key]) => `{${[...before, `"${key}"${gap}:${gap}${NAME}${gap}`, ...after].join()}}`,
  );
/** The same, or one in the member that holds it in events of responses and messages. */
const namedEvent = fc
  .tuple(namedObject, fc.constantFrom('', 'response', 'message'))
  .map(([object, holder]) =>
    holder === '' ? object : `{"type":"x","${holder}":${object},"b":{"model":${MODEL}}}`,
  );
const line = fc.constantFrom('\n', '\r\n');
const stream = fc
  .array(fc.tuple(namedEvent, line, fc.constantFrom('', 'event: a', ': model')), { maxLength: 4 })
  .map((events) =>
    events
      .map(
        ([text, end, field]) =>
          `${field}${field === '' ? '' : end}data: ${text.replace(/[\r\n]/g, '')}${end}${end}`,
      )
      .join(''),
  );

const answered = fc.oneof(
  fc.record({ type: fc.constant('application/json'), text: namedObject }),
  fc.record({ type: fc.constant('text/event-stream'), text: stream }),
  fc.record({ type: fc.constantFrom('text/plain', 'application/octet-stream'), text: fc.string() }),
  fc.record({ type: fc.constant('application/json'), text: fc.string() }),
);

const exchange = fc.record({
  request: namedObject,
  answer: answered,
  status: fc.constantFrom(200, 200, 201, 400, 404, 500),
  hasLength: fc.boolean(),
  cuts: fc.array(fc.nat(300), { maxLength: 4 }),
});
type Exchanged = typeof exchange extends fc.Arbitrary<infer T> ? T : never;

const named = (text: string, name: string) => Buffer.from(text.replaceAll(NAME, name));

/** Answers with these bytes in pieces. */
function answerPieces({ answer, status, hasLength, cuts }: Exchanged): Script {
  const bytes = named(answer.text, MODEL);
  const places = [...new Set(cuts)].filter((cut) => cut < bytes.length).sort((a, b) => a - b);
  return async ({ request, head, write, end }) => {
    await request.body;
    const length = hasLength ? ['Content-Length', String(bytes.length)] : [];
    await head(status, ['Content-Type', answer.type, ...length]);
    for (const [i, place] of places.entries())
      await write(bytes.subarray(i === 0 ? 0 : places[i - 1], place));
    end(bytes.subarray(places.at(-1) ?? 0));
  };
}

/** Sends the request with this name of the model. Returns what the replica and the client got. */
async function pass(path: string, exchanged: Exchanged, name: string) {
  replica.answerOnce(answerPieces(exchanged));
  const sent = postBytes(path, named(exchanged.request, name));
  const response = await exchangeRaw(gateway.url, sent);
  const received = await replica.nextRequest();
  expect(received.url).toBe(path);
  expect(response.status).toBe(exchanged.status);
  expect(response.isComplete).toBe(true);
  const record = await gateway.nextRecord();
  expect(record).toMatchObject({ endpoint: path, model: 'llama-3.3-70b', status: exchanged.status });
  const [length] = response.header('content-length');
  if (length !== undefined) expect(Number(length)).toBe(response.body.length);
  return { upstream: await received.body, body: response.body, record };
}

describe.each(PATHS)('at POST %s', (path) => {
  test('the replica gets the bytes of the client, and the client those of the replica', async () => {
    await fc.assert(
      fc.asyncProperty(exchange, async (exchanged) => {
        const { upstream, body, record } = await pass(path, exchanged, MODEL);
        expect(upstream.toString()).toBe(named(exchanged.request, MODEL).toString());
        expect(body.toString()).toBe(named(exchanged.answer.text, MODEL).toString());
        expect(record.model_requested).toBeUndefined();
      }),
      { numRuns: runs(25) },
    );
  });

  test('with an alias they differ in the name of the model alone', async () => {
    await fc.assert(
      fc.asyncProperty(exchange, async (exchanged) => {
        const { upstream, body, record } = await pass(path, exchanged, ALIAS);
        expect(upstream.toString()).toBe(named(exchanged.request, MODEL).toString());
        expect(body.toString()).toBe(named(exchanged.answer.text, ALIAS).toString());
        expect(record.model_requested).toBe('gpt-4o');
      }),
      { numRuns: runs(25) },
    );
  });
});
