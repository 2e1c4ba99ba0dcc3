import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { answerStream, type Script } from '#testkit/fake-replica.ts';
import { readCapture } from '#testkit/reading/captures.ts';
import { lastingFactsOf } from '#testkit/reading/lasting-facts.ts';
import { runs } from '#testkit/runs.ts';
import { startFurtherEndpoints } from '#testkit/start-pair.ts';

const RESPONSES = '/v1/responses';
const MESSAGES = '/v1/messages';
const COUNT_TOKENS = '/v1/messages/count_tokens';
const PATHS = [RESPONSES, MESSAGES, COUNT_TOKENS] as const;

/** Streams these bytes and breaks the connection. */
const breakAfter =
  (bytes: string | Uint8Array): Script =>
  async ({ request, head, write, reset }) => {
    await request.body;
    await head(200, ['Content-Type', 'text/event-stream']);
    await write(bytes);
    reset();
  };

describe('endpoints that the configuration does not name', () => {
  test('are not found, as the contract has it, and leave no record', async () => {
    const { gateway, replica } = await startFurtherEndpoints({ endpoints: [] });
    for (const path of PATHS) {
      const response = await gateway.post(path, { model: 'm' });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: { code: 'not_found', param: null } });
    }
    await gateway.chat();
    await gateway.nextRecord();
    expect(gateway.records).toHaveLength(1);
    expect(replica.requests.map(({ url }) => url)).toEqual(['/v1/chat/completions']);
  });

  test('are switched on and off by a reload', async () => {
    const { gateway } = await startFurtherEndpoints({ endpoints: [] });
    const statusOf = async (path: string) => (await gateway.post(path, { model: 'm' })).status;

    gateway.writeConfig({ config: { endpoints: ['messages'] } });
    expect(await (await gateway.reload()).json()).toMatchObject({ changed: ['endpoints'] });
    expect(await Promise.all(PATHS.map(statusOf))).toEqual([404, 200, 200]);

    gateway.writeConfig({ config: { endpoints: [] } });
    await gateway.reload();
    expect(await Promise.all(PATHS.map(statusOf))).toEqual([404, 404, 404]);
  });

  test('are not found by any other method', async () => {
    const { gateway } = await startFurtherEndpoints();
    for (const path of PATHS) expect((await fetch(gateway.url + path)).status).toBe(404);
    expect((await gateway.post(`${MESSAGES}/`, { model: 'm' })).status).toBe(404);
  });
});

describe('a stream', () => {
  const streams = [
    [RESPONSES, 'llama/responses-stream'],
    [RESPONSES, 'vllm/responses-stream'],
    [MESSAGES, 'llama/messages-stream'],
    [MESSAGES, 'vllm/messages-stream'],
  ] as const;

  test.for(streams)(
    'of %s (%s) reaches the client byte for byte, with the same record however it is cut',
    async ([path, name]) => {
      const { gateway, replica } = await startFurtherEndpoints();
      const { body } = readCapture(name);
      const relay = async (pieces: readonly Buffer[]) => {
        replica.answer(answerStream(pieces));
        const response = await gateway.post(path, { model: 'm', stream: true });
        expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true);
        return lastingFactsOf(await gateway.nextRecord());
      };
      const facts = await relay([body]);
      expect(facts).toMatchObject({
        endpoint: path,
        stream: true,
        status: 200,
        prompt_tokens: 11,
        completion_tokens: 8,
        response_model: 'tiny',
      });
      expect(facts.truncated).toBeUndefined();

      const places = fc.array(fc.integer({ min: 1, max: body.length - 1 }), { maxLength: 30 });
      await fc.assert(
        fc.asyncProperty(places, async (cuts) => {
          const edges = [0, ...[...new Set(cuts)].sort((a, b) => a - b), body.length];
          const pieces = edges.slice(1).map((edge, i) => body.subarray(edges[i], edge));
          expect(await relay(pieces)).toEqual(facts);
        }),
        { numRuns: runs(12) },
      );
    },
  );

  test('has its first output and its gaps in the record', async () => {
    const { gateway, replica } = await startFurtherEndpoints();
    replica.answer(answerStream(readCapture('vllm/messages-stream').chunks));
    await (await gateway.post(MESSAGES, { model: 'm', stream: true })).text();
    const { ttft_ms = 0, e2e_ms, gap_p50_ms } = await gateway.nextRecord();
    expect(ttft_ms).toBeGreaterThan(0);
    expect(ttft_ms).toBeLessThanOrEqual(e2e_ms);
    expect(gap_p50_ms).toBeDefined();
  });

  test.for([
    [RESPONSES, 'vllm/responses-stream', 'response.output_text.done'],
    [MESSAGES, 'vllm/messages-stream', 'message_stop'],
  ] as const)('of %s that ends without its end mark is truncated', async ([path, name, last]) => {
    const { gateway, replica } = await startFurtherEndpoints();
    const text = readCapture(name).body.toString();
    const cut = text.slice(0, text.indexOf(`event: ${last}`));
    replica.answer(answerStream([cut]));
    expect(await (await gateway.post(path, { model: 'm', stream: true })).text()).toBe(cut);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, truncated: true });
  });

  test.for([
    [RESPONSES, 'vllm/responses-stream', { type: 'error', code: 'upstream_failed', param: null }],
    [
      MESSAGES,
      'vllm/messages-stream',
      { type: 'error', error: { type: 'api_error', code: 'upstream_failed' } },
    ],
  ] as const)(
    'of %s that breaks off ends with an error event of that API',
    async ([path, name, expected]) => {
      const { gateway, replica } = await startFurtherEndpoints();
      const begun = readCapture(name).body.subarray(0, 500).toString();
      replica.answer(breakAfter(begun));
      const text = await (await gateway.post(path, { model: 'm', stream: true })).text();
      expect(text.startsWith(`${begun}\n\nevent: error\ndata: {`)).toBe(true);
      const [data = ''] = text.slice(begun.length).match(/\{.*\}/) ?? [];
      expect(JSON.parse(data)).toMatchObject(expected);
      expect(await gateway.nextRecord()).toMatchObject({
        status: 200,
        error_type: 'upstream_failed',
        truncated: true,
      });
    },
  );

  test('whose last event is larger than limits.event is relayed, and not said to be truncated', async () => {
    const { gateway, replica } = await startFurtherEndpoints({ limits: { event: '64KiB' } });
    const first = 'data: {"type":"response.created","response":{"id":"r"}}\n\n';
    const response = { output: ['x'.repeat(1_000_000)], usage: { input_tokens: 7 } };
    const last = `data: ${JSON.stringify({ type: 'response.completed', response })}\n\n`;
    replica.answer(answerStream([first, last]));
    const answer = await gateway.post(RESPONSES, { model: 'm', stream: true });
    expect((await answer.text()) === first + last).toBe(true);
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ response_id: 'r', status: 200 });
    expect(record.prompt_tokens).toBeUndefined();
    expect(record.truncated).toBeUndefined();
  });

  test('that breaks off after its end mark is whole', async () => {
    const { gateway, replica } = await startFurtherEndpoints();
    const { body } = readCapture('llama/messages-stream');
    replica.answer(breakAfter(body));
    const response = await gateway.post(MESSAGES, { model: 'm', stream: true });
    expect(await response.text()).toBe(body.toString());
    const record = await gateway.nextRecord();
    expect(record.truncated).toBeUndefined();
    expect(record.error_type).toBeUndefined();
  });
});
