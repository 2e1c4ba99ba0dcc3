import type { RecordedEndpoint } from '#otel/encode/recorded-endpoint.ts';
import { JsonCursor, type JsonKind, JsonSyntaxError, type Span } from '../../json/cursor.ts';
import type { MemberAllowance } from '../../json/member-allowance.ts';
import { Failure } from '../failure.ts';
import { type Flag, MAX_FLAG_CHARS, NO_FLAG } from './engine-flags.ts';

/** Where a value of a top-level `stream_options` stands in the body, and of what kind it is. */
interface StreamOptionsSpan extends Span {
  readonly kind: JsonKind;
}

/** What a request says about stream options; of duplicate members the last one counts, as in every engine. */
export interface StreamOptions {
  /** The value of every top-level `stream_options`, in the order of the body. */
  readonly spans: readonly StreamOptionsSpan[];
  /** Of what kind the last one is. */
  readonly kind: JsonKind | 'absent';
  /** Its `include_usage`. */
  readonly includeUsage: Flag;
  /** Its `continuous_usage_stats` (vLLM, SGLang). */
  readonly continuousUsageStats: Flag;
}

/** What the gateway needs to know of a request body. It holds offsets into the body, no text but the model. */
export interface RequestFacts {
  /** The whole model name; null if it is absent, no string, or 64 KiB long: such a request is answered with 400. */
  readonly model: string | null;
  /** `stream` as it was sent: engines differ in what they take for true (`readFlag`). */
  readonly stream: Flag;
  /** `max_completion_tokens`, else `max_tokens`; undefined if neither is a non-negative integer. */
  readonly maxTokens: number | undefined;
  /** How many choices were asked for; undefined if `n` is no non-negative integer. */
  readonly n: number | undefined;
  readonly streamOptions: StreamOptions;
  /** Offset of the body's closing brace. A member stands before it: the model. */
  readonly closingBrace: number;
  /** The value that holds the request's text: `messages`, `prompt` or `input`, by the endpoint. */
  readonly text: Span | undefined;
  /** The value of `tools`. */
  readonly tools: Span | undefined;
}

const TEXT_MEMBERS: Readonly<Record<RecordedEndpoint, string>> = {
  '/v1/chat/completions': 'messages',
  '/v1/completions': 'prompt',
  '/v1/embeddings': 'input',
};

/**
 * Reads the facts of a request body in one strict pass. Of duplicate members the last one counts.
 *
 * @throws {Failure} `invalid_json` if the body is not one JSON object, or has more `stream_options` than anybody
 *   needs
 * @param allowance asked as the body's members and elements are gone over; what it throws is thrown
 */
export function readRequestFacts(
  body: Buffer,
  endpoint: RecordedEndpoint,
  allowance?: MemberAllowance,
): RequestFacts {
  return new FactsReader(body, TEXT_MEMBERS[endpoint], allowance).read();
}

/**
 * A body may repeat `stream_options`, and `include_usage` in it, this often in all. Each one is a place to be
 * remembered and changed; a body of 32 MiB has room for over a million, which would take gigabytes.
 */
const MAX_USAGE_MEMBERS = 256;

/** All `stream_options` of a body: they are gone over once more for each attempt. */
const MAX_STREAM_OPTIONS_BYTES = 64 * 1024;

/** A model's name, as it is written. No replica has a longer one, and copying and comparing it would cost. */
const MAX_MODEL_BYTES = 64 * 1024;

/** One pass over one body: a class because its switch fills a dozen variables. */
class FactsReader {
  readonly #cursor: JsonCursor;
  readonly #textMember: string;
  #model: string | undefined;
  #stream: Flag;
  #maxTokens: number | undefined;
  #maxCompletionTokens: number | undefined;
  #n: number | undefined;
  readonly #streamOptionsSpans: StreamOptionsSpan[] = [];
  #streamOptions: StreamOptions = {
    spans: this.#streamOptionsSpans,
    kind: 'absent',
    includeUsage: undefined,
    continuousUsageStats: undefined,
  };
  #usageMemberCount = 0;
  #streamOptionsBytes = 0;
  #text: Span | undefined;
  #tools: Span | undefined;

  constructor(body: Buffer, textMember: string, allowance?: MemberAllowance) {
    this.#cursor = new JsonCursor(body, 0, body.length, allowance);
    this.#textMember = textMember;
  }

  read(): RequestFacts {
    const closingBrace = this.#readBody();
    return {
      model: this.#model ?? null,
      stream: this.#stream,
      maxTokens: this.#maxCompletionTokens ?? this.#maxTokens,
      n: this.#n,
      streamOptions: this.#streamOptions,
      closingBrace,
      text: this.#text,
      tools: this.#tools,
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
      // The cause tells the offset of the error and nothing of the text.
      if (error instanceof JsonSyntaxError) throw new Failure('invalid_json', error);
      throw error;
    }
  }

  #readMember(key: string): void {
    const cursor = this.#cursor;
    switch (key) {
      case 'model':
        this.#model = readModel(cursor);
        return;
      case 'stream':
        this.#stream = readRawFlag(cursor);
        return;
      case 'max_completion_tokens':
        this.#maxCompletionTokens = readCount(cursor);
        return;
      case 'max_tokens':
        this.#maxTokens = readCount(cursor);
        return;
      case 'n':
        this.#n = readCount(cursor);
        return;
      case 'stream_options':
        this.#countUsageMember();
        this.#readStreamOptions();
        return;
      case 'tools':
        this.#tools = skipToSpan(cursor);
        return;
      case this.#textMember:
        this.#text = skipToSpan(cursor);
        return;
      default:
        cursor.skip();
    }
  }

  #readStreamOptions(): void {
    const cursor = this.#cursor;
    const kind = cursor.peek();
    const start = cursor.position;
    let includeUsage: Flag;
    let continuousUsageStats: Flag;
    if (kind === 'object') {
      cursor.beginObject();
      while (cursor.nextKey()) {
        const key = cursor.key();
        if (key === 'include_usage') {
          this.#countUsageMember();
          includeUsage = readRawFlag(cursor);
        } else if (key === 'continuous_usage_stats') {
          continuousUsageStats = readRawFlag(cursor);
        } else {
          cursor.skip();
        }
      }
    } else {
      cursor.skip();
    }
    this.#streamOptionsBytes += cursor.valueEnd - start;
    if (this.#streamOptionsBytes > MAX_STREAM_OPTIONS_BYTES) throw new Failure('invalid_json');
    const spans = this.#streamOptionsSpans;
    spans.push({ start, end: cursor.valueEnd, kind });
    this.#streamOptions = { spans, kind, includeUsage, continuousUsageStats };
  }

  #countUsageMember(): void {
    if (++this.#usageMemberCount > MAX_USAGE_MEMBERS) throw new Failure('invalid_json');
  }
}

function readModel(cursor: JsonCursor): string | undefined {
  if (cursor.peek() !== 'string') {
    cursor.skip();
    return undefined;
  }
  const hasEscapes = cursor.readStringSpan();
  const isTooLong = cursor.valueEnd - cursor.valueStart > MAX_MODEL_BYTES;
  return isTooLong ? undefined : cursor.decodeString(hasEscapes);
}

/** A character is written with six at most. */
const MAX_WRITTEN_FLAG_BYTES = 6 * MAX_FLAG_CHARS;

function readRawFlag(cursor: JsonCursor): Flag {
  switch (cursor.peek()) {
    case 'true':
    case 'false':
      return cursor.readBoolean();
    case 'null':
      cursor.readNull();
      return null;
    case 'number':
      return cursor.readNumber();
    case 'string': {
      const hasEscapes = cursor.readStringSpan();
      if (cursor.valueEnd - cursor.valueStart > MAX_WRITTEN_FLAG_BYTES) return NO_FLAG;
      const text = cursor.decodeString(hasEscapes);
      return text.length > MAX_FLAG_CHARS ? NO_FLAG : text;
    }
    default:
      cursor.skip();
      return NO_FLAG;
  }
}

function skipToSpan(cursor: JsonCursor): Span {
  cursor.skip();
  return { start: cursor.valueStart, end: cursor.valueEnd };
}

/** The next value if it is of this kind; else it is skipped. */
function readIf<T>(cursor: JsonCursor, kind: JsonKind, read: () => T): T | undefined {
  if (cursor.peek() === kind) return read();
  cursor.skip();
  return undefined;
}

function readCount(cursor: JsonCursor): number | undefined {
  const value = readIf(cursor, 'number', () => cursor.readNumber());
  // Adding zero makes a plain 0 of -0.
  return value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value + 0 : undefined;
}
