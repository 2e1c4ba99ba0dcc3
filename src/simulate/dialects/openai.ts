import { type Failure, STATUS_OF } from '../failure.ts';
import type { JsonObject } from '../json-members.ts';
import type { Answer, Choice } from '../plan-answer.ts';
import type { Usage } from '../settings.ts';
import {
  choiceText,
  type Dialect,
  DONE,
  event,
  plainHead,
  type Step,
  stepCount,
  toDelta,
  USUAL,
} from './dialect.ts';

const SYSTEM_FINGERPRINT = 'fp_simulated';

/**
 * The API as its reference documents it: a role chunk, deltas, a separate finishing chunk. With include_usage a usage
 * chunk comes at the end, and all other chunks have `usage: null`.
 */
export const openaiDialect: Dialect = {
  engine: 'openai',
  headers: {},
  streamHeaders: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  ...USUAL,
  health: '{"status":"ok"}',
  models: (names, _maxModelTokens, createdSeconds) => ({
    object: 'list',
    data: names.map((id) => ({ id, object: 'model', created: createdSeconds, owned_by: 'simulated' })),
  }),
  *stream(answer) {
    for (let position = 0; position < stepCount(answer); position += 1) yield toStep(answer, position);
    const asked = answer.streamOptions?.include_usage === true;
    const usage = event({ ...head(answer, 'chunk'), choices: [], usage: usageMember(answer.usage) });
    yield { after: 'nothing', writes: asked ? [usage, DONE] : [DONE], tokens: 0 };
  },
  body: (answer) => ({
    ...head(answer, 'whole'),
    choices: answer.choices.map((choice) => wholeChoice(answer, choice)),
    usage: usageMember(answer.usage),
  }),
  embeddings: ({ model, vectors, promptTokens }) => ({
    object: 'list',
    data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    model,
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
  }),
  error(failure) {
    const { message, type, param, code } = wording(failure);
    const headers = failure.code === 'method_not_allowed' ? { allow: 'POST' } : {};
    return { status: STATUS_OF[failure.code], headers, body: { error: { message, type, param, code } } };
  },
  streamError: event({
    error: { message: 'Simulated engine error', type: 'server_error', param: null, code: null },
  }),
};

function head(answer: Answer, part: 'chunk' | 'whole'): JsonObject {
  return { ...plainHead(answer, part), system_fingerprint: SYSTEM_FINGERPRINT };
}

function toStep(answer: Answer, position: number): Step {
  const nullUsage = answer.streamOptions?.include_usage === true ? { usage: null } : {};
  const chunk = (choice: JsonObject): string =>
    event({ ...head(answer, 'chunk'), choices: [choice], ...nullUsage });
  const said = (choice: Choice, delta: JsonObject, finishReason: string | null): string =>
    chunk({ index: choice.index, delta, logprobs: null, finish_reason: finishReason });
  const generating = answer.choices.filter((choice) => position < choice.tokenCount);
  const writes = generating.flatMap((choice) => {
    const isLast = position === choice.tokenCount - 1;
    const token = choice.tokenAt(position);
    if (answer.kind === 'completion') {
      const finishReason = isLast ? choice.finishReason : null;
      const { text } = token;
      return [chunk({ text, index: choice.index, logprobs: null, finish_reason: finishReason })];
    }
    const role = { role: 'assistant', content: '', refusal: null };
    return [
      ...(position === 0 ? [said(choice, role, null)] : []),
      said(choice, toDelta(choice, token), null),
      ...(isLast ? [said(choice, {}, choice.finishReason)] : []),
    ];
  });
  return { after: position === 0 ? 'first_token' : 'next_token', writes, tokens: generating.length };
}

function wholeChoice(answer: Answer, choice: Choice): JsonObject {
  const { content, reasoning, call } = choiceText(choice);
  const ending = { logprobs: null, finish_reason: choice.finishReason };
  if (answer.kind === 'completion') return { text: content ?? '', index: choice.index, ...ending };
  const calls =
    call === null ? {} : { tool_calls: [{ id: choice.toolCallId, type: 'function', function: call }] };
  const thought = reasoning === null ? {} : { reasoning_content: reasoning };
  const message = { role: 'assistant', content, ...thought, ...calls, refusal: null };
  return { index: choice.index, message, ...ending };
}

function usageMember(usage: Usage): JsonObject {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens, audio_tokens: 0 },
  };
}

function wording(failure: Failure): Readonly<Record<'message' | 'type' | 'param' | 'code', string | null>> {
  const type = 'invalid_request_error';
  const invalid = (message: string, param: string | null = null, code: string | null = null) => {
    return { message, type, param, code };
  };
  switch (failure.code) {
    case 'not_found':
      return invalid('Unknown request URL');
    case 'method_not_allowed':
      return invalid('Not allowed on this endpoint');
    case 'invalid_json':
      return invalid('We could not parse the JSON body of your request.');
    case 'missing_field':
      return invalid(
        `Missing required parameter: '${failure.field}'.`,
        failure.field,
        'missing_required_parameter',
      );
    case 'wrong_value':
      return invalid(`Invalid value: '${failure.field}' must be ${failure.expected}.`, failure.field);
    case 'unknown_model':
      return invalid(`The model \`${failure.model}\` does not exist.`, null, 'model_not_found');
    case 'too_long':
      return invalid(`The prompt has ${failure.promptTokens} tokens.`, 'messages', 'context_length_exceeded');
    case 'too_large':
      return invalid('Request too large');
    case 'loading':
      return { message: 'Loading model', type: 'server_error', param: null, code: null };
    default:
      return { message: 'Simulated engine error', type: 'server_error', param: null, code: null };
  }
}
