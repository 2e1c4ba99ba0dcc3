import { QUESTION } from './answers.ts';
import type { RecordedClient } from './client.ts';
import type { Report } from './report.ts';

const LEAVES_AFTER = 20;
const LONG_ANSWER_TOKENS = 1500;

/** With `progressive_usage`: a stream that its client leaves has tokens, and what clients get is what they get without. */
export async function checkProgressive(
  client: RecordedClient,
  { openai }: RecordedClient,
  report: Report,
): Promise<void> {
  report.section('progressive_usage: the engine is asked for timings with each event');
  const request = { model: 'tiny', messages: QUESTION, max_tokens: 16, temperature: 0, seed: 1 } as const;
  const shapes = [];
  for (const each of [client.openai, openai]) {
    const stream = await each.chat.completions.create({ ...request, stream: true });
    const chunks = await Array.fromAsync(stream);
    shapes.push(chunks.map((chunk) => [Object.keys(chunk).join(), chunk.choices]));
  }
  report.same('the members of each chunk, and its choices', shapes[0], shapes[1]);

  const whole = await openai.chat.completions.create(request);
  const { data, response } = await client.openai.chat.completions
    .create({ ...request, max_tokens: LONG_ANSWER_TOKENS, stream: true, ...{ ignore_eos: true } })
    .withResponse();
  let outputCount = 0;
  for await (const { choices } of data)
    if (choices[0]?.delta.content && ++outputCount === LEAVES_AFTER) break;
  const record = await client.recordOf(response);
  report.same(
    'error_type, usage_source',
    [record.error_type, record.usage_source],
    ['client_closed', 'progressive'],
  );
  report.same('prompt_tokens', record.prompt_tokens, whole.usage?.prompt_tokens);
  const predicted = Number(record.completion_tokens);
  report.holds(
    `completion_tokens: ${predicted}, after ${LEAVES_AFTER} chunks with output`,
    predicted >= LEAVES_AFTER && predicted < LONG_ANSWER_TOKENS,
  );
}
