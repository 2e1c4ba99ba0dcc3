import { type Failure, STATUS_OF } from '../failure.ts';
import type { JsonObject } from '../json-members.ts';
import type { Answer, Choice, Token } from '../plan-answer.ts';
import type { Usage } from '../settings.ts';
import {
  choiceText,
  type Dialect,
  DONE,
  event,
  plainHead,
  type Step,
  stepCount,
  USUAL,
  usageSoFar,
} from './dialect.ts';

const SYSTEM_FINGERPRINT = 'vllm-simulated';

/**
 * vLLM 0.32, from captures of a real server. The role chunks of all choices come before the first token. The finish
 * reason is on the chunk of the last token, or on a separate chunk after a tool call. `system_fingerprint` is on the
 * usage chunk if there is one, and else on the finishing chunk. Headers are those of uvicorn: lower-case, without
 * keep-alive hints.
 */
export const vllmDialect: Dialect = {
  engine: 'vllm',
  headers: { server: 'uvicorn', vary: 'Origin' },
  streamHeaders: { 'content-type': 'text/event-stream; charset=utf-8' },
  ...USUAL,
  health: '',
  models: (names, maxModelTokens, createdSeconds) => ({
    object: 'list',
    data: names.map((name) => ({
      id: name,
      object: 'model',
      created: createdSeconds,
      owned_by: 'vllm',
      root: name,
      parent: null,
      max_model_len: maxModelTokens,
      permission: [],
    })),
  }),
  *stream(answer) {
    const options = usageOptions(answer);
    for (let position = 0; position < stepCount(answer); position += 1) {
      yield toStep(answer, position, options);
    }
    const tail = { usage: usageMember(answer), system_fingerprint: SYSTEM_FINGERPRINT };
    const usageEvent = event({ ...plainHead(answer, 'chunk'), choices: [], ...tail });
    yield { after: 'nothing', writes: options.atEnd ? [usageEvent, DONE] : [DONE], tokens: 0 };
  },
  body: (answer) => ({
    ...plainHead(answer, 'whole'),
    choices: answer.choices.map((choice) => wholeChoice(answer, choice)),
    service_tier: null,
    system_fingerprint: SYSTEM_FINGERPRINT,
    usage: wholeUsage(answer),
    ...(answer.kind === 'chat' ? { prompt_logprobs: null, prompt_token_ids: null, prompt_text: null } : {}),
    kv_transfer_params: null,
    ec_transfer_params: null,
    metrics: null,
  }),
  embeddings: ({ id, createdSeconds, model, vectors, promptTokens }) => ({
    id: `embd-${id}`,
    object: 'list',
    created: createdSeconds,
    model,
    data: vectors.map((embedding, index) => ({ index, object: 'embedding', embedding })),
    usage: { ...counts({ promptTokens, completionTokens: 0 }), prompt_tokens_details: null },
  }),
  error(failure, context) {
    const status = STATUS_OF[failure.code];
    if (failure.code === 'not_found') return { status, headers: {}, body: { detail: 'Not Found' } };
    if (failure.code === 'method_not_allowed') {
      return { status, headers: { allow: 'POST' }, body: { detail: 'Method Not Allowed' } };
    }
    return { status, headers: {}, body: { error: { ...wording(failure, context), code: status } } };
  },
  streamError:
    event({
      error: { message: 'Simulated engine error', type: 'InternalServerError', param: null, code: 500 },
    }) + DONE,
};

/**
 * What `stream_options` asks for. Running figures need include_usage, which defaults to false since vLLM 0.18
 * (vllm-project/vllm#36379).
 */
function usageOptions(answer: Answer): { atEnd: boolean; running: boolean } {
  const options = answer.streamOptions;
  const atEnd = options?.include_usage === true;
  return { atEnd, running: atEnd && options?.continuous_usage_stats === true };
}

function toStep(answer: Answer, position: number, options: { atEnd: boolean; running: boolean }): Step {
  const running = (choice: Choice, tokens: number): JsonObject =>
    options.running
      ? { usage: { ...counts(usageSoFar(choice.usage, tokens)), completion_tokens_details: null } }
      : {};
  const chunk = (choices: JsonObject, rest: JsonObject): string =>
    event({ ...plainHead(answer, 'chunk'), choices: [choices], ...rest });
  const generating = answer.choices.filter((choice) => position < choice.tokenCount);
  const role = (choice: Choice): string => {
    const delta = { role: 'assistant', content: '' };
    const opening = { index: choice.index, delta, logprobs: null, finish_reason: null };
    return chunk(opening, { ...running(choice, 0), prompt_token_ids: null, prompt_text: null });
  };
  const tokens = generating.flatMap((choice) => {
    const isLast = position === choice.tokenCount - 1;
    const token = choice.tokenAt(position);
    const fingerprint = isLast && !options.atEnd ? { system_fingerprint: SYSTEM_FINGERPRINT } : {};
    const rest = { ...running(choice, position + 1), ...fingerprint };
    if (answer.kind === 'completion') return chunk(completionChoice(choice, token.text, isLast), rest);
    const isCall = token.kind === 'call' || token.kind === 'arguments';
    const finish = { index: choice.index, delta: {}, ...chatEnding(choice, true) };
    const ending = chatEnding(choice, isLast && !isCall);
    const said = { index: choice.index, delta: toDelta(choice, token), ...ending };
    if (!isLast || !isCall) return chunk(said, rest);
    return [chunk(said, running(choice, position + 1)), chunk(finish, rest)];
  });
  const isFirst = position === 0;
  return {
    after: isFirst ? 'first_token' : 'next_token',
    writes: isFirst && answer.kind === 'chat' ? [...answer.choices.map(role), ...tokens] : tokens,
    tokens: generating.length,
  };
}

function chatEnding(choice: Choice, isLast: boolean): JsonObject {
  const finish = isLast ? { finish_reason: choice.finishReason, stop_reason: null } : { finish_reason: null };
  return { logprobs: null, ...finish, token_ids: null };
}

function toDelta(choice: Choice, token: Token): JsonObject {
  switch (token.kind) {
    case 'reasoning':
      return { reasoning: token.text };
    case 'content':
      return { content: token.text };
    case 'call': {
      const call = { id: choice.toolCallId, type: 'function', index: 0, function: { name: token.text } };
      return { content: null, tool_calls: [call] };
    }
    case 'arguments':
      return { content: null, tool_calls: [{ index: 0, function: { arguments: token.text } }] };
  }
}

function completionChoice(choice: Choice, text: string, isLast: boolean): JsonObject {
  return {
    index: choice.index,
    text,
    logprobs: null,
    finish_reason: isLast ? choice.finishReason : null,
    stop_reason: null,
    prompt_token_ids: null,
    token_ids: null,
  };
}

function wholeChoice(answer: Answer, choice: Choice): JsonObject {
  const { content, reasoning, call } = choiceText(choice);
  const ending = { logprobs: null, finish_reason: choice.finishReason, stop_reason: null, token_ids: null };
  if (answer.kind === 'completion') {
    const prompt = { prompt_logprobs: null, prompt_token_ids: null };
    return { index: choice.index, text: content ?? '', ...ending, ...prompt, routed_experts: null };
  }
  const toolCalls =
    call === null ? {} : { tool_calls: [{ id: choice.toolCallId, type: 'function', function: call }] };
  const message = {
    role: 'assistant',
    content,
    refusal: null,
    annotations: null,
    audio: null,
    function_call: null,
    ...toolCalls,
    reasoning,
  };
  return { index: choice.index, message, ...ending, routed_experts: null };
}

function counts(usage: Pick<Usage, 'promptTokens' | 'completionTokens'>): JsonObject {
  return {
    prompt_tokens: usage.promptTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    completion_tokens: usage.completionTokens,
  };
}

/** The final chunk has no null members; completions do not report what they added to the cache. */
function usageMember({ kind, usage }: Answer): JsonObject {
  const created = kind === 'chat' ? { created_cache_tokens: usage.createdCacheTokens } : {};
  const reasoning = { completion_tokens_details: { reasoning_tokens: usage.reasoningTokens } };
  return {
    ...counts(usage),
    prompt_tokens_details: { cached_tokens: usage.cachedTokens, ...created },
    ...(usage.reasoningTokens > 0 ? reasoning : {}),
  };
}

function wholeUsage({ kind, usage }: Answer): JsonObject {
  return {
    ...counts(usage),
    prompt_tokens_details: {
      cached_tokens: usage.cachedTokens,
      created_cache_tokens: kind === 'chat' ? usage.createdCacheTokens : null,
      multimodal_tokens: null,
    },
    completion_tokens_details: usage.reasoningTokens > 0 ? { reasoning_tokens: usage.reasoningTokens } : null,
  };
}

function wording(
  failure: Failure,
  { models, maxModelTokens }: { readonly models: readonly string[]; readonly maxModelTokens: number },
): { message: string; type: string; param: string | null } {
  const invalid = (type: string, param: string, what: string) => {
    const message = `1 validation error:\n  {'type': '${type}', 'loc': '${param}', 'msg': '${what}'}`;
    return { message, type: 'Bad Request', param };
  };
  switch (failure.code) {
    case 'invalid_json':
      return invalid('json_invalid', 'body', 'JSON decode error');
    case 'missing_field':
      return invalid('missing', `body.${failure.field}`, 'Field required');
    case 'wrong_value':
      return invalid('value_error', `body.${failure.field}`, `Input should be ${failure.expected}`);
    case 'unknown_model': {
      const message = `The model \`${failure.model}\` does not exist. Valid aliases: ${models.join(', ')}.`;
      return { message, type: 'NotFoundError', param: 'model' };
    }
    case 'too_long': {
      const limit = `This model's maximum context length is ${maxModelTokens} tokens.`;
      const message = `${limit} However, your prompt contains ${failure.promptTokens} input tokens.`;
      return { message, type: 'BadRequestError', param: 'input_tokens' };
    }
    case 'too_large':
      return { message: 'Request body too large', type: 'BadRequestError', param: null };
    case 'loading':
      return { message: 'Loading model', type: 'ServiceUnavailableError', param: null };
    default:
      return { message: 'Simulated engine error', type: 'InternalServerError', param: null };
  }
}
