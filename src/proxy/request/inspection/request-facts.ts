import { JsonCursor, JsonSyntaxError, type MemberAllowance, readCount, readText, type Span } from '#json';
import type { RecordedEndpoint } from '../../endpoints/recorded-endpoint.ts';
import { Failure } from '../../failure.ts';
import { type ModelAliases, resolveModel, type UsedAlias } from '../model-aliases.ts';
import { ConversationReader, MAX_NAME_BYTES } from './conversation.ts';
import { type Flag, readRawFlag } from './engine-flags.ts';
import { type NameDoubts, NameDoubtsReader, readCheckedText } from './member-names.ts';
import { ParametersReader, type RequestParameters } from './request-parameters.ts';
import { type StreamOptions, StreamOptionsReader } from './stream-options.ts';

/** What the gateway needs to know of a request body: offsets into the body, and no text but the model. */
export interface RequestFacts {
  /** The whole name of the model, which an alias may stand for. Null if it is absent or not a string. */
  readonly model: string | null;
  /** The name that the client wrote instead of `model`; null: it wrote that. */
  readonly alias: UsedAlias | null;
  /** `stream` as it was sent: engines differ in what they read as true (`readFlag`). */
  readonly stream: Flag;
  /** `background` as it was sent: whether the engine may go on after its answer. */
  readonly background: Flag;
  /** The first of the endpoint's `maxTokensMembers` that is a non-negative integer; undefined if none is. */
  readonly maxTokens: number | undefined;
  /** How many choices were asked for; undefined if `n` is not a non-negative integer. */
  readonly n: number | undefined;
  readonly streamOptions: StreamOptions;
  /** `timings_per_token` as it was sent: whether llama.cpp tells its timings with each event. */
  readonly timingsPerToken: Flag;
  /** Offset of the body's closing brace. At least one member precedes it: the model. */
  readonly closingBrace: number;
  /** The values of the endpoint's `textMembers`, in their order; empty if there are none. */
  readonly texts: readonly (Span | undefined)[];
  /** The value of `tools`. */
  readonly tools: Span | undefined;
  /** The `previous_response_id`; undefined: absent or null. Null: not a string, or longer than 1 KiB. */
  readonly previousResponseId: string | null | undefined;
  /** Whether the body may say what id the response gets: `request_id`, with vLLM and SGLang. */
  readonly choosesId: boolean;
  /** How much the model shall reason; undefined if the body does not say it, or in more than 64 bytes. */
  readonly reasoningLevel: string | undefined;
  /** What the body calls its conversation; undefined if it does not name one. */
  readonly conversation: string | undefined;
  /** Null: the body has none that spans have. */
  readonly parameters: RequestParameters | null;
  /** Names of members that an engine might read otherwise. Those in the text are in its description. */
  readonly names: NameDoubts;
}

/**
 * Reads the facts of a request body in one strict pass. Of duplicate members the last one counts.
 *
 * @throws {Failure} `invalid_json` if the body is not one JSON object; `large_stream_options`; `model_not_found` for a
 *   name that is too long to be one of a model
 * @param aliases the names that stand for models
 * @param allowance asked as the body's members and elements are read; what it throws is thrown
 */
export function readRequestFacts(
  body: Buffer,
  endpoint: RecordedEndpoint,
  aliases: ModelAliases = null,
  allowance?: MemberAllowance,
): RequestFacts {
  return new FactsReader(body, endpoint, allowance).read(aliases);
}

/** The top-level members that are read at every endpoint, besides those of its text and its limits. */
const COMMON_MEMBERS = [
  'model',
  'stream',
  'background',
  'n',
  'stream_options',
  'timings_per_token',
  'tools',
  'previous_response_id',
  'request_id',
  'reasoning_effort',
  'reasoning',
  'output_config',
  'conversation',
  'metadata',
  'prompt_cache_key',
] as const;

type CommonMember = (typeof COMMON_MEMBERS)[number];

const commonMembers: ReadonlySet<string> = new Set(COMMON_MEMBERS);

function isCommonMember(key: string): key is CommonMember {
  return commonMembers.has(key);
}

/** For a model's name as it is written. No replica has a longer one, and to copy and compare it would cost. */
const MAX_MODEL_BYTES = 64 * 1024;

/** One pass over one body. It is a class because the pass fills a dozen variables. */
class FactsReader {
  readonly #cursor: JsonCursor;
  readonly #endpoint: RecordedEndpoint;
  #model: string | undefined;
  /** The value of `model`, with its quotes if it is a string. */
  #modelSpan: Span = { start: 0, end: 0 };
  #stream: Flag;
  #background: Flag;
  #timingsPerToken: Flag;
  /** The counts of the endpoint's `maxTokensMembers`, by their index. */
  readonly #maxTokens: (number | undefined)[] = [];
  #n: number | undefined;
  readonly #names = new NameDoubtsReader();
  readonly #streamOptions = new StreamOptionsReader(this.#names);
  readonly #texts: (Span | undefined)[] = [];
  #tools: Span | undefined;
  #previousResponseId: string | null | undefined;
  #choosesId = false;
  #reasoningLevel: string | undefined;
  readonly #conversation = new ConversationReader(this.#names);
  readonly #parameters = new ParametersReader();
  /** The names of the members that were read. */
  readonly #read: string[] = [];

  constructor(body: Buffer, endpoint: RecordedEndpoint, allowance?: MemberAllowance) {
    this.#cursor = new JsonCursor(body, 0, body.length, allowance);
    this.#endpoint = endpoint;
  }

  read(aliases: ModelAliases): RequestFacts {
    const closingBrace = this.#readBody();
    const name = this.#model;
    const model = name === undefined ? null : resolveModel(name, aliases);
    return {
      model,
      alias: name === undefined || name === model ? null : { name, span: this.#modelSpan },
      stream: this.#stream,
      background: this.#background,
      maxTokens: this.#maxTokens.find(isCount),
      n: this.#n,
      streamOptions: this.#streamOptions.options,
      timingsPerToken: this.#timingsPerToken,
      closingBrace,
      texts: this.#texts,
      tools: this.#tools,
      previousResponseId: this.#previousResponseId,
      choosesId: this.#choosesId,
      reasoningLevel: this.#reasoningLevel,
      conversation: this.#conversation.name,
      parameters: this.#parameters.read(this.#n),
      names: { lookalike: this.#names.lookalike, repeated: this.#names.repeated },
    };
  }

  #readBody(): number {
    const cursor = this.#cursor;
    try {
      cursor.beginObject();
      while (cursor.nextKey()) this.#readMember(cursor.key());
      const closingBrace = cursor.position - 1;
      cursor.end();
      return closingBrace;
    } catch (error) {
      // The cause names the offset of the error and quotes nothing.
      if (error instanceof JsonSyntaxError) throw new Failure('invalid_json', error);
      throw error;
    }
  }

  #readMember(key: string): void {
    if (isCommonMember(key)) this.#readCommonMember(key);
    else this.#readEndpointMember(key);
  }

  #noteRead(key: string): void {
    const isRepeated = this.#read.includes(key);
    if (!isRepeated) this.#read.push(key);
    this.#names.noteRead(key, isRepeated);
  }

  #readCommonMember(key: CommonMember): void {
    const cursor = this.#cursor;
    this.#noteRead(key);
    switch (key) {
      case 'model':
        this.#readModel();
        return;
      case 'stream':
        this.#stream = readRawFlag(cursor);
        return;
      case 'background':
        this.#background = readRawFlag(cursor);
        return;
      case 'n':
        this.#n = readCount(cursor);
        return;
      case 'stream_options':
        this.#streamOptions.read(cursor);
        return;
      case 'timings_per_token':
        this.#timingsPerToken = readRawFlag(cursor);
        return;
      case 'tools':
        this.#tools = skipToSpan(cursor);
        return;
      case 'previous_response_id':
        this.#readPreviousResponseId();
        return;
      case 'request_id':
        this.#choosesId = true;
        cursor.skip();
        return;
      case 'reasoning_effort':
      case 'reasoning':
      case 'output_config':
        this.#reasoningLevel = readReasoningLevel(cursor, key, this.#names) ?? this.#reasoningLevel;
        return;
      case 'conversation':
      case 'metadata':
      case 'prompt_cache_key':
        this.#conversation.read(cursor, key);
        return;
      default:
        throw new Error(`a common member is not read: ${key satisfies never}`);
    }
  }

  #readModel(): void {
    const cursor = this.#cursor;
    const isText = cursor.peek() === 'string';
    const start = cursor.position;
    this.#model = readText(cursor, MAX_MODEL_BYTES);
    if (isText && this.#model === undefined) throw new Failure('model_not_found');
    this.#modelSpan = { start, end: cursor.position };
  }

  #readPreviousResponseId(): void {
    const cursor = this.#cursor;
    const isNull = cursor.peek() === 'null';
    const id = readText(cursor, MAX_NAME_BYTES);
    this.#previousResponseId = isNull ? undefined : (id ?? null);
  }

  #readEndpointMember(key: string): void {
    const cursor = this.#cursor;
    const { textMembers, maxTokensMembers } = this.#endpoint;
    const textIndex = textMembers.indexOf(key);
    const limitIndex = maxTokensMembers.indexOf(key);
    if (textIndex === -1 && limitIndex === -1) {
      for (const names of [COMMON_MEMBERS, textMembers, maxTokensMembers]) this.#names.noteUnread(key, names);
      this.#parameters.readOrSkip(cursor, key);
      return;
    }
    this.#noteRead(key);
    if (textIndex !== -1) this.#texts[textIndex] = skipToSpan(cursor);
    else this.#maxTokens[limitIndex] = readCount(cursor);
  }
}

function skipToSpan(cursor: JsonCursor): Span {
  cursor.skip();
  return { start: cursor.valueStart, end: cursor.valueEnd };
}

function isCount(value: number | undefined): boolean {
  return value !== undefined;
}

/** For a level as it is written: `medium`, or a word that an engine knows. */
const MAX_LEVEL_BYTES = 64;

/**
 * Where a body may say how much a model shall reason: itself in `reasoning_effort` (chat completions), as the member
 * `effort` in `reasoning` (OpenAI's responses) and `output_config` (Anthropic's messages).
 */
type ReasoningMember = 'reasoning_effort' | 'reasoning' | 'output_config';

/** Reads the value of one of the members; undefined if it says no level. */
function readReasoningLevel(
  cursor: JsonCursor,
  member: ReasoningMember,
  names: NameDoubtsReader,
): string | undefined {
  return member === 'reasoning_effort'
    ? readText(cursor, MAX_LEVEL_BYTES)
    : readCheckedText(cursor, 'effort', MAX_LEVEL_BYTES, names);
}
