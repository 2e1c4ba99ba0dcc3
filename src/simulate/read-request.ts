import { Refusal } from './failure.ts';
import { integerMember, isJsonObject, type JsonObject } from './json-members.ts';
import { type Prompt, textPrompt, tokenPrompt } from './prefix-cache.ts';

/** A tool that the answer calls. */
export interface Tool {
  readonly name: string;
  /** The JSON schema of the arguments, as sent. */
  readonly parameters: JsonObject;
}

/** Reasoning tokens before the answer, as a share of the answer's tokens. */
type ReasoningShare = 0 | 0.25 | 0.5 | 1;

/** A chat completion or a completion, reduced to what the simulation needs. */
export interface GenerationRequest {
  readonly kind: 'chat' | 'completion';
  readonly model: string;
  readonly stream: boolean;
  /** `stream_options` as sent, or null. */
  readonly streamOptions: JsonObject | null;
  /** Choices per prompt. */
  readonly n: number;
  readonly maxTokens: number | null;
  /** vLLM's `ignore_eos`: generate up to maxTokens. */
  readonly ignoreEos: boolean;
  /** One for a chat. */
  readonly prompts: readonly Prompt[];
  readonly tool: Tool | null;
  readonly reasoningShare: ReasoningShare;
}

/** An embeddings request. */
export interface EmbeddingsRequest {
  readonly model: string;
  readonly inputs: readonly Prompt[];
  readonly base64: boolean;
  readonly dimensions: number;
}

const MAX_CHOICES = 128;
const MAX_PROMPTS = 2048;
const MAX_DIMENSIONS = 4096;
const DEFAULT_DIMENSIONS = 384;

/** Reads the body of a chat completion. Throws Refusal. */
export function readChatRequest(body: JsonObject): GenerationRequest {
  const messages = body.messages;
  if (messages === undefined) throw new Refusal({ code: 'missing_field', field: 'messages' });
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new Refusal({ code: 'wrong_value', field: 'messages', expected: 'a non-empty list' });
  }
  return {
    ...readCommon(body),
    kind: 'chat',
    prompts: [textPrompt(messages.map(messageText).join(''))],
    tool: pickTool(body, messages.at(-1)),
    reasoningShare: reasoningShareOf(body),
  };
}

/** Reads the body of a legacy completion. Throws Refusal. */
export function readCompletionRequest(body: JsonObject): GenerationRequest {
  const common = readCommon(body);
  const prompts = promptsOf(body, 'prompt');
  if (prompts.length * common.n > MAX_PROMPTS) {
    throw new Refusal({ code: 'wrong_value', field: 'n', expected: `at most ${MAX_PROMPTS} choices in all` });
  }
  return { ...common, kind: 'completion', prompts, tool: null, reasoningShare: 0 };
}

/** Reads the body of an embeddings request. Throws Refusal. */
export function readEmbeddingsRequest(body: JsonObject): EmbeddingsRequest {
  return {
    model: modelOf(body),
    inputs: promptsOf(body, 'input'),
    base64: body.encoding_format === 'base64',
    dimensions: integerMember(body, 'dimensions', 1, MAX_DIMENSIONS) ?? DEFAULT_DIMENSIONS,
  };
}

function readCommon(
  body: JsonObject,
): Omit<GenerationRequest, 'kind' | 'prompts' | 'tool' | 'reasoningShare'> {
  const most = Number.MAX_SAFE_INTEGER;
  return {
    model: modelOf(body),
    stream: body.stream === true,
    streamOptions: isJsonObject(body.stream_options) ? body.stream_options : null,
    n: integerMember(body, 'n', 1, MAX_CHOICES) ?? 1,
    maxTokens:
      integerMember(body, 'max_completion_tokens', 1, most) ?? integerMember(body, 'max_tokens', 1, most),
    ignoreEos: body.ignore_eos === true,
  };
}

/** Engines take a request without model for their own model; so an absent one is the empty name. */
function modelOf(body: JsonObject): string {
  const model = body.model ?? '';
  if (typeof model === 'string') return model;
  throw new Refusal({ code: 'wrong_value', field: 'model', expected: 'a string' });
}

/** The four shapes of `prompt` and `input`: text, texts, token ids, lists of token ids. */
function promptsOf(body: JsonObject, field: 'prompt' | 'input'): readonly Prompt[] {
  const value = body[field];
  if (value === undefined) throw new Refusal({ code: 'missing_field', field });
  const prompts: unknown[] = Array.isArray(value) && !isTokenIds(value) ? value : [value];
  const read = prompts.map((prompt) => {
    if (typeof prompt === 'string') return textPrompt(prompt);
    return isTokenIds(prompt) ? tokenPrompt(prompt) : null;
  });
  if (read.length > 0 && read.length <= MAX_PROMPTS && read.every((prompt) => prompt !== null)) return read;
  const expected = `a string, token ids, or a list of up to ${MAX_PROMPTS} of them`;
  throw new Refusal({ code: 'wrong_value', field, expected });
}

function isTokenIds(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every((id) => Number.isInteger(id));
}

/** A message as a chat template would render it; media count as one mark. */
function messageText(message: unknown): string {
  if (!isJsonObject(message))
    throw new Refusal({ code: 'wrong_value', field: 'messages', expected: 'objects' });
  return `<|${String(message.role)}|>\n${contentText(message.content)}\n`;
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => (isJsonObject(part) && typeof part.text === 'string' ? part.text : '\uFFFC'))
    .join('');
}

/** The tool to call: the one that `tool_choice` names, the first if it requires one, or one that the last message names. */
function pickTool(body: JsonObject, lastMessage: unknown): Tool | null {
  if (!Array.isArray(body.tools) || body.tool_choice === 'none') return null;
  const tools = body.tools.map(toolOf).filter((tool) => tool !== null);
  if (body.tool_choice === 'required') return tools[0] ?? null;
  if (isJsonObject(body.tool_choice)) {
    const chosen = toolOf(body.tool_choice);
    return tools.find((tool) => tool.name === chosen?.name) ?? null;
  }
  if (!isJsonObject(lastMessage) || lastMessage.role !== 'user') return null;
  const asked = contentText(lastMessage.content);
  return (
    tools.find((tool) => asked.includes(tool.name)) ?? (/\btools?\b/i.test(asked) ? (tools[0] ?? null) : null)
  );
}

function toolOf(value: unknown): Tool | null {
  const declared = isJsonObject(value) ? value.function : null;
  if (!isJsonObject(declared) || typeof declared.name !== 'string') return null;
  return { name: declared.name, parameters: isJsonObject(declared.parameters) ? declared.parameters : {} };
}

function reasoningShareOf(body: JsonObject): ReasoningShare {
  switch (body.reasoning_effort) {
    case 'none':
      return 0;
    case 'minimal':
    case 'low':
      return 0.25;
    case 'medium':
      return 0.5;
    case 'high':
    case 'xhigh':
      return 1;
  }
  const template = body.chat_template_kwargs;
  return isJsonObject(template) && template.enable_thinking === true ? 0.5 : 0;
}
