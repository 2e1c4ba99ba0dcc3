import type { FakeCollector } from '#testkit/fake-collector.ts';
import type { RecordedClient } from '../llama/client.ts';
import type { Report } from '../llama/report.ts';

/** The engine's own spans are children of those of the gateway, and their times fit into it. */
export async function checkTraces(
  client: RecordedClient,
  collector: FakeCollector,
  report: Report,
): Promise<void> {
  report.section("The engine's spans are below those of the gateway");
  const { response } = await client.openai.chat.completions
    .create({ model: 'tiny', messages: [{ role: 'user', content: 'The sea.' }], max_tokens: 12 })
    .withResponse();
  const record = await client.recordOf(response);
  const findOwn = () =>
    collector.spans.find(
      ({ attributes }) => attributes['gateway.request_id'] === response.headers.get('x-request-id'),
    );
  const findTheirs = () =>
    collector.spans.find(({ traceId, name }) => traceId === findOwn()?.traceId && name === 'llm_request');
  await collector.waitFor(() => findTheirs() !== undefined);
  const [own, theirs] = [findOwn(), findTheirs()];
  const attempt = collector.spans.find(({ spanId }) => spanId === theirs?.parentSpanId);
  report.holds("the parent of the engine's span is one of the gateway's", attempt !== undefined);
  report.holds('it belongs to the same trace', own !== undefined && attempt?.traceId === own.traceId);
  const firstTokenMs = 1_000 * Number(theirs?.attributes['gen_ai.latency.time_to_first_token']);
  report.holds(
    `the engine's time to first token, ${firstTokenMs.toFixed(1)} ms, is within the request's ${record.e2e_ms} ms`,
    firstTokenMs > 0 && firstTokenMs < Number(record.e2e_ms),
  );
  report.same(
    "the engine's tokens",
    ['prompt', 'completion'].map((kind) => theirs?.attributes[`gen_ai.usage.${kind}_tokens`]),
    [record.prompt_tokens, record.completion_tokens],
  );
}
