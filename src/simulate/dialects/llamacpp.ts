import { type Failure, STATUS_OF } from '../failure.ts';
import type { JsonObject } from '../json-members.ts';
import type { Answer, Choice } from '../plan-answer.ts';
import type { Usage } from '../settings.ts';
import {
  choiceText,
  type Dialect,
  DONE,
  event,
  type Step,
  type Stopwatch,
  stepCount,
  toDelta,
} from './dialect.ts';

/**
 * llama.cpp's server, from captures of a real one. The role chunk shares a write with the first token, the finishing
 * chunk with the usage chunk. Each choice has a usage chunk. `timings` are on the usage chunk if there is one, and else
 * on the finishing chunk. Legacy completions always report usage, on the finishing chunk. A connection lasts 5 s idle or
 * 100 requests. Any model name is served.
 */
export const llamacppDialect: Dialect = {
  engine: 'llamacpp',
  headers: { Server: 'llama.cpp', 'Access-Control-Allow-Origin': '' },
  streamHeaders: { 'X-Accel-Buffering': 'no', 'Content-Type': 'text/event-stream' },
  sendsDate: false,
  jsonContentType: 'application/json; charset=utf-8',
  hintsKeepAlive: true,
  headersBeforeFirstToken: false,
  servesAnyModel: true,
  maxRequestsPerConnection: 100,
  health: '{"status":"ok"}',
  models: (names, maxModelTokens, createdSeconds) => ({
    models: names.map((name) => ({ name, model: name, type: 'model', capabilities: ['completion'] })),
    object: 'list',
    data: names.map((name) => ({
      id: name,
      aliases: [name],
      tags: [],
      object: 'model',
      created: createdSeconds,
      owned_by: 'llamacpp',
      meta: { n_ctx: maxModelTokens, n_ctx_train: maxModelTokens },
    })),
  }),
  *stream(answer, stopwatch) {
    for (let position = 0; position < stepCount(answer); position += 1) {
      const generating = answer.choices.filter((choice) => position < choice.tokenCount);
      yield tokenStep(answer, position, generating);
      const finished = generating.filter((choice) => position === choice.tokenCount - 1);
      const writes = finished.map((choice) => finish(answer, choice, stopwatch));
      if (writes.length > 0) yield { after: 'nothing', writes, tokens: 0 };
    }
    yield { after: 'nothing', writes: [DONE], tokens: 0 };
  },
  body: (answer, stopwatch) => ({
    choices: answer.choices.map((choice) => wholeChoice(answer, choice)),
    created: answer.createdSeconds,
    model: answer.model,
    system_fingerprint: SYSTEM_FINGERPRINT,
    object: answer.kind === 'chat' ? 'chat.completion' : 'text_completion',
    usage: usageMember(answer.usage),
    id: `chatcmpl-${answer.id}`,
    timings: timings(answer.usage, stopwatch),
  }),
  embeddings: ({ model, vectors, base64, promptTokens }) => ({
    model,
    object: 'list',
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    data: vectors.map((embedding, index) => ({
      embedding,
      index,
      object: 'embedding',
      ...(base64 ? { encoding_format: 'base64' } : {}),
    })),
  }),
  error(failure, { maxModelTokens }) {
    const code = failure.code === 'method_not_allowed' ? 404 : STATUS_OF[failure.code];
    const size = { n_ctx: maxModelTokens };
    const limits = failure.code === 'too_long' ? { n_prompt_tokens: failure.promptTokens, ...size } : {};
    const error = { code, ...wording(failure, maxModelTokens), ...limits };
    return { status: code, headers: { Connection: 'close' }, body: { error } };
  },
  streamError: event({ error: { code: 500, message: 'Simulated engine error', type: 'server_error' } }),
};

const SYSTEM_FINGERPRINT = 'b0-simulated';

function chunk(answer: Answer, choices: readonly JsonObject[], rest: JsonObject = {}): string {
  const { createdSeconds: created, model } = answer;
  const id = `chatcmpl-${answer.id}`;
  const fingerprint = { system_fingerprint: SYSTEM_FINGERPRINT };
  if (answer.kind === 'completion') {
    const { timings: measured, ...usage } = rest;
    const tail = measured === undefined ? {} : { timings: measured };
    return event({
      choices,
      created,
      model,
      ...fingerprint,
      object: 'text_completion',
      ...usage,
      id,
      ...tail,
    });
  }
  return event({ choices, created, id, model, ...fingerprint, object: 'chat.completion.chunk', ...rest });
}

function tokenStep(answer: Answer, position: number, generating: readonly Choice[]): Step {
  const writes = generating.map((choice) => {
    const token = choice.tokenAt(position);
    if (answer.kind === 'completion') return chunk(answer, [completionChoice(choice, token.text, false)]);
    const { index } = choice;
    const said = chunk(answer, [{ finish_reason: null, index, delta: toDelta(choice, token) }]);
    if (position > 0) return said;
    return (
      chunk(answer, [{ finish_reason: null, index, delta: { role: 'assistant', content: null } }]) + said
    );
  });
  return { after: position === 0 ? 'first_token' : 'next_token', writes, tokens: generating.length };
}

function finish(answer: Answer, choice: Choice, stopwatch: Stopwatch): string {
  const measured = { timings: timings(choice.usage, stopwatch) };
  const usage = { usage: usageMember(choice.usage), ...measured };
  if (answer.kind === 'completion') return chunk(answer, [completionChoice(choice, '', true)], usage);
  const finishing = { finish_reason: choice.finishReason, index: choice.index, delta: {} };
  if (answer.streamOptions?.include_usage !== true) return chunk(answer, [finishing], measured);
  return chunk(answer, [finishing]) + chunk(answer, [], usage);
}

function completionChoice({ index, finishReason }: Choice, text: string, isLast: boolean): JsonObject {
  return { text, index, logprobs: null, finish_reason: isLast ? finishReason : null };
}

function wholeChoice(answer: Answer, choice: Choice): JsonObject {
  const { content, reasoning, call } = choiceText(choice);
  if (answer.kind === 'completion') return completionChoice(choice, content ?? '', true);
  const calls =
    call === null ? {} : { tool_calls: [{ type: 'function', function: call, id: choice.toolCallId }] };
  const thought = reasoning === null ? {} : { reasoning_content: reasoning };
  const message = { role: 'assistant', content, ...thought, ...calls };
  return { finish_reason: choice.finishReason, index: choice.index, message };
}

function usageMember(usage: Usage): JsonObject {
  return {
    completion_tokens: usage.completionTokens,
    prompt_tokens: usage.promptTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}

function timings(usage: Usage, stopwatch: Stopwatch): JsonObject {
  const promptCount = usage.promptTokens - usage.cachedTokens;
  const promptMs = Math.max(0.001, stopwatch.promptMs());
  const predictedMs = Math.max(0.001, stopwatch.predictedMs());
  return {
    cache_n: usage.cachedTokens,
    prompt_n: promptCount,
    prompt_ms: promptMs,
    prompt_per_token_ms: promptMs / promptCount,
    prompt_per_second: (1000 * promptCount) / promptMs,
    predicted_n: usage.completionTokens,
    predicted_ms: predictedMs,
    predicted_per_token_ms: predictedMs / usage.completionTokens,
    predicted_per_second: (1000 * usage.completionTokens) / predictedMs,
  };
}

function wording(failure: Failure, maxModelTokens: number): { message: string; type: string } {
  const invalid = (message: string) => ({ message, type: 'invalid_request_error' });
  switch (failure.code) {
    case 'not_found':
    case 'method_not_allowed':
      return { message: 'File Not Found', type: 'not_found_error' };
    case 'invalid_json':
      return invalid('[json.exception.parse_error.101] parse error');
    case 'missing_field':
      return invalid(`'${failure.field}' is required`);
    case 'wrong_value':
      return invalid(`Expected '${failure.field}' to be ${failure.expected}`);
    case 'too_long': {
      const size = `request (${failure.promptTokens} tokens) exceeds the available context size`;
      const message = `${size} (${maxModelTokens} tokens), try increasing it`;
      return { message, type: 'exceed_context_size_error' };
    }
    case 'too_large':
      return invalid('Payload too large');
    case 'loading':
      return { message: 'Loading model', type: 'unavailable_error' };
    default:
      return { message: 'Simulated engine error', type: 'server_error' };
  }
}
