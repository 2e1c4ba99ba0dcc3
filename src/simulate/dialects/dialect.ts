import type { Failure } from '../failure.ts';
import type { JsonObject } from '../json-members.ts';
import type { Answer, Choice, Token } from '../plan-answer.ts';
import type { SimulatedEngine, Usage } from '../settings.ts';

/** What goes out at one moment of a stream. */
export interface Step {
  /** What this step waits for: the first token, the next one, or nothing. */
  readonly after: 'first_token' | 'next_token' | 'nothing';
  /** One write each: engines differ in which events share one. */
  readonly writes: readonly string[];
  /** Tokens in this step, over all choices. */
  readonly tokens: number;
}

/** An error as one engine puts it on the wire. */
interface WireError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Vectors of one embeddings request, each a list of numbers or their little-endian float32 in base64. */
interface Embeddings {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  readonly vectors: readonly (readonly number[] | string)[];
  readonly base64: boolean;
  readonly promptTokens: number;
}

/** Times of an answer, for engines that report them. */
export interface Stopwatch {
  /** Milliseconds from the request to the first token, and from there to now. */
  promptMs(): number;
  predictedMs(): number;
}

/** The answers of one engine on the wire: pure but for the stopwatch. The tests of the gateway use them, too. */
export interface Dialect {
  readonly engine: SimulatedEngine;
  /** On every response. */
  readonly headers: Readonly<Record<string, string>>;
  /** Additional ones on streams. */
  readonly streamHeaders: Readonly<Record<string, string>>;
  readonly sendsDate: boolean;
  readonly jsonContentType: string;
  /** Whether responses have `Keep-Alive: timeout=5`; uvicorn closes idle connections without announcing it. */
  readonly hintsKeepAlive: boolean;
  /** Whether the headers of a stream go out before its first token. */
  readonly headersBeforeFirstToken: boolean;
  /** Whether a request for an unknown model is served by the loaded one. */
  readonly servesAnyModel: boolean;
  /** Requests after which a connection is closed; 0: never. */
  readonly maxRequestsPerConnection: number;
  /** Body of /health; empty for none. */
  readonly health: string;
  models(names: readonly string[], maxModelTokens: number, createdSeconds: number): unknown;
  /** The events of a streamed answer, to its `[DONE]`. */
  stream(answer: Answer, stopwatch: Stopwatch): Generator<Step, void, void>;
  /** The body of an answer that is not streamed. */
  body(answer: Answer, stopwatch: Stopwatch): unknown;
  embeddings(embeddings: Embeddings): unknown;
  error(
    failure: Failure,
    context: { readonly models: readonly string[]; readonly maxModelTokens: number },
  ): WireError;
  /** What ends a stream that fails in its middle. */
  readonly streamError: string;
}

/** How most servers behave. */
export const USUAL = {
  sendsDate: true,
  jsonContentType: 'application/json',
  hintsKeepAlive: false,
  headersBeforeFirstToken: true,
  servesAnyModel: false,
  maxRequestsPerConnection: 0,
} as const;

/** One server-sent event. */
export function event(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** The end of every stream. */
export const DONE = 'data: [DONE]\n\n';

/** The whole text of a choice, by part; null where the choice has none of it. */
export interface ChoiceText {
  readonly content: string | null;
  readonly reasoning: string | null;
  readonly call: { readonly name: string; readonly arguments: string } | null;
}

/** Joins a choice's tokens. */
export function choiceText(choice: Answer['choices'][number]): ChoiceText {
  const text = { reasoning: '', content: '', call: '', arguments: '' };
  for (let position = 0; position < choice.tokenCount; position += 1) {
    const token = choice.tokenAt(position);
    text[token.kind] += token.text;
  }
  return {
    content: text.content === '' ? null : text.content,
    reasoning: text.reasoning === '' ? null : text.reasoning,
    call: text.call === '' ? null : { name: text.call, arguments: text.arguments },
  };
}

/** The most tokens any choice of an answer has: the number of steps its generation takes. */
export function stepCount(answer: Answer): number {
  return answer.choices.reduce((most, choice) => Math.max(most, choice.tokenCount), 0);
}

/** A usage of the same request after only some completion tokens. */
export function usageSoFar(usage: Usage, completionTokens: number): Usage {
  return { ...usage, completionTokens, reasoningTokens: Math.min(usage.reasoningTokens, completionTokens) };
}

/** The members that a chunk or a whole answer begins with, as the API documents them. */
export function plainHead(answer: Answer, part: 'chunk' | 'whole'): JsonObject {
  const isChat = answer.kind === 'chat';
  const chatObject = part === 'chunk' ? 'chat.completion.chunk' : 'chat.completion';
  return {
    id: `${isChat ? 'chatcmpl' : 'cmpl'}-${answer.id}`,
    object: isChat ? chatObject : 'text_completion',
    created: answer.createdSeconds,
    model: answer.model,
  };
}

/** The delta of one token, as the API documents it; reasoning by the name that most servers use. */
export function toDelta({ toolCallId }: Pick<Choice, 'toolCallId'>, token: Token): JsonObject {
  switch (token.kind) {
    case 'reasoning':
      return { reasoning_content: token.text };
    case 'content':
      return { content: token.text };
    case 'call': {
      const called = { name: token.text, arguments: '' };
      return { tool_calls: [{ index: 0, id: toolCallId, type: 'function', function: called }] };
    }
    case 'arguments':
      return { tool_calls: [{ index: 0, function: { arguments: token.text } }] };
  }
}
