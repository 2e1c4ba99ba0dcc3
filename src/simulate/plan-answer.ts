import { isJsonObject } from './json-members.ts';
import type { CacheHit, Prompt } from './prefix-cache.ts';
import type { GenerationRequest, Tool } from './read-request.ts';
import type { Usage } from './settings.ts';

/** One token of an answer, and so one event of a stream. */
export interface Token {
  /** `call` is the tool's name, which engines send before its `arguments`. */
  readonly kind: 'reasoning' | 'content' | 'call' | 'arguments';
  readonly text: string;
}

/** One choice of an answer, planned before its first token. */
export interface Choice {
  readonly index: number;
  readonly tokenCount: number;
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
  readonly toolCallId: string | null;
  readonly usage: Usage;
  /** The token at a position from 0 to tokenCount - 1. It is computed, so that long answers take no memory. */
  tokenAt(position: number): Token;
}

/** An answer, planned before its first byte. */
export interface Answer {
  readonly kind: GenerationRequest['kind'];
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  readonly streamOptions: GenerationRequest['streamOptions'];
  readonly choices: readonly Choice[];
  /** Of all choices together; each prompt counts once. */
  readonly usage: Usage;
}

/** Settings and random numbers of a plan. */
export interface PlanContext {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  readonly tokens: number;
  readonly maxModelTokens: number;
  readonly random: () => number;
}

/** Plans an answer. `hits` are the cache hits of the prompts, in order. */
export function planAnswer(
  request: GenerationRequest,
  hits: readonly CacheHit[],
  context: PlanContext,
): Answer {
  const choices = request.prompts.flatMap((prompt, promptIndex) =>
    Array.from({ length: request.n }, (_, choice) =>
      planChoice(promptIndex * request.n + choice, { request, prompt, hit: hits[promptIndex] }, context),
    ),
  );
  const firsts = choices.filter((choice) => choice.index % request.n === 0).map((choice) => choice.usage);
  const all = choices.map((choice) => choice.usage);
  return {
    kind: request.kind,
    id: context.id,
    createdSeconds: context.createdSeconds,
    model: context.model,
    streamOptions: request.streamOptions,
    choices,
    usage: {
      promptTokens: sum(firsts, 'promptTokens'),
      cachedTokens: sum(firsts, 'cachedTokens'),
      createdCacheTokens: sum(firsts, 'createdCacheTokens'),
      completionTokens: sum(all, 'completionTokens'),
      reasoningTokens: sum(all, 'reasoningTokens'),
    },
  };
}

function planChoice(
  index: number,
  { request, prompt, hit }: { request: GenerationRequest; prompt: Prompt; hit: CacheHit | undefined },
  context: PlanContext,
): Choice {
  const room = Math.max(1, context.maxModelTokens - prompt.tokens);
  const limit = Math.min(request.maxTokens ?? room, room);
  const call = request.tool === null ? null : callTokens(request.tool, context.random);
  const thought = Math.round(context.tokens * request.reasoningShare);
  const natural = thought + (call?.length ?? context.tokens);
  const tokenCount = request.ignoreEos ? limit : Math.min(natural, limit);
  const isCut = request.ignoreEos || natural > limit;
  const from = Math.floor(context.random() * SENTENCE_STARTS.length);
  const start = SENTENCE_STARTS[from] ?? 0;
  return {
    index,
    tokenCount,
    finishReason: isCut ? 'length' : call === null ? 'stop' : 'tool_calls',
    toolCallId: call === null ? null : `chatcmpl-tool-${hexDigits(16, context.random)}`,
    usage: {
      promptTokens: prompt.tokens,
      cachedTokens: hit?.cachedTokens ?? 0,
      createdCacheTokens: hit?.createdCacheTokens ?? 0,
      completionTokens: tokenCount,
      reasoningTokens: Math.min(thought, tokenCount),
    },
    tokenAt(position) {
      if (position < thought) return { kind: 'reasoning', text: wordAt(position, 0) };
      const called = call?.[position - thought];
      return called ?? { kind: 'content', text: wordAt(position - thought, start) };
    },
  };
}

/** The text of all answers, each of which starts at one of the sentences. */
const WORDS = (
  'A gateway stands between clients and replicas. It passes every byte on as it comes. ' +
  'It counts the tokens that the engine reports. It times the first token and the gaps after it. ' +
  'It keeps no prompt and no completion. When a replica is drained, new requests go to the others. ' +
  'Streams that are open run to their end. Then the replica can be stopped without loss.'
).split(/(?= )/);

const SENTENCE_STARTS = WORDS.flatMap((_, index) =>
  index === 0 || WORDS[index - 1]?.endsWith('.') ? [index] : [],
);

function wordAt(position: number, start: number): string {
  const word = WORDS[(start + position) % WORDS.length] ?? '';
  if (position === 0) return word.trimStart();
  return word.startsWith(' ') ? word : ` ${word}`;
}

/** A call with generated arguments that fit the top level of the schema, one fragment per token. */
function callTokens(tool: Tool, random: () => number): readonly Token[] {
  const properties = isJsonObject(tool.parameters.properties) ? tool.parameters.properties : {};
  const values = Object.entries(properties)
    .slice(0, 16)
    .map(([name, schema]) => [name, exampleOf(schema, random)]);
  const fragments = JSON.stringify(Object.fromEntries(values)).match(/.{1,4}/gsu) ?? [];
  return [
    { kind: 'call', text: tool.name },
    ...fragments.map((text): Token => ({ kind: 'arguments', text })),
  ];
}

function exampleOf(schema: unknown, random: () => number): unknown {
  if (!isJsonObject(schema)) return null;
  if (Array.isArray(schema.enum)) return schema.enum[Math.floor(random() * schema.enum.length)] ?? null;
  switch (schema.type) {
    case 'integer':
      return Math.floor(random() * 100);
    case 'number':
      return Math.round(random() * 1000) / 10;
    case 'boolean':
      return random() < 0.5;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return 'example';
  }
}

/** Lower-case hexadecimal digits for ids. */
export function hexDigits(count: number, random: () => number): string {
  return Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join('');
}

function sum<Key extends string>(counts: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return counts.reduce((total, entry) => total + entry[key], 0);
}
