import type OpenAI from 'openai';
import type { RecordedClient } from '../llama/client.ts';
import type { Report } from '../llama/report.ts';
import { readWhenIdle } from './engine.ts';

const STREAMS = 40;
const LONG_ANSWER_TOKENS = 1_000;
/** What the engine generates of a choice until it has noticed that its client is gone. */
const MORE_TOKENS = 3;

/** What was recorded of abandoned streams, and what the engine counts. */
export interface AbandonedTokens {
  readonly streams: number;
  readonly recorded: number;
  readonly counted: number;
  /** Of how many streams both say the same. */
  readonly equal: number;
}

/**
 * With `progressive_usage`: clients leave streams, one after the other, and the tokens of each record are compared with
 * those that the engine's own counter gained. A chat has one or two choices, a completion one or two prompts.
 */
export async function checkAbandoned(
  client: RecordedClient,
  engineUrl: string,
  report: Report,
): Promise<AbandonedTokens> {
  report.section(`${STREAMS} streams that their clients leave: the tokens are those that the engine counts`);
  const sums = { streams: STREAMS, recorded: 0, counted: 0, equal: 0 };
  let { generationTokens: before } = await readWhenIdle(engineUrl);
  for (let index = 0; index < STREAMS; index++) {
    const choices = 1 + (index % 2);
    const { data, response } = await begin(client.openai, index % 4 < 2, choices);
    let events = 0;
    for await (const _ of data) if (++events === 2 + ((index * 7) % 40)) break;
    const record = await client.recordOf(response);
    const { generationTokens: after } = await readWhenIdle(engineUrl);
    const [recorded, counted] = [Number(record.completion_tokens), after - before];
    before = after;
    sums.recorded += recorded;
    sums.counted += counted;
    sums.equal += Number(recorded === counted);
    const isRight =
      record.usage_source === 'progressive' &&
      recorded <= counted &&
      counted <= recorded + choices * MORE_TOKENS;
    if (!isRight)
      report.holds(`stream ${index}: ${recorded} tokens (${record.usage_source}), ${counted} counted`, false);
  }
  const { recorded, counted, equal } = sums;
  report.holds(
    `${recorded} tokens recorded, ${counted} counted; the same of ${equal} streams, else at most ${MORE_TOKENS} more of a choice`,
    equal > STREAMS / 2,
  );
  return sums;
}

function begin(openai: OpenAI, isChat: boolean, choices: number) {
  const long = { model: 'tiny', max_tokens: LONG_ANSWER_TOKENS, stream: true, ignore_eos: true } as const;
  const content = 'Tell me something about the sea.';
  if (isChat)
    return openai.chat.completions
      .create({ ...long, messages: [{ role: 'user', content }], n: choices })
      .withResponse();
  return openai.completions
    .create({ ...long, prompt: [content, 'And the wind?'].slice(0, choices) })
    .withResponse();
}
