/** What a client's `stream_options` means to an engine. */
export interface UsageAsked {
  /** A usage chunk at the end. */
  readonly usage: boolean;
  /** Running figures on every chunk. */
  readonly continuous: boolean;
}

/** A boolean as a client may send it. */
export type ClientFlag = boolean | null | number | string;

/** `stream_options` as a client may send it. */
export interface ClientStreamOptions {
  readonly include_usage?: ClientFlag;
  readonly continuous_usage_stats?: boolean;
}

/** The answer of an engine to one request. */
export interface EngineAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** One exchange: a request, and the engine's answers to it with and without usage. */
export interface EngineCase {
  /** The row of the matrix. */
  readonly name: string;
  /** The source of the engine's bytes; `unverified` if nobody has captured them. */
  readonly source: string;
  readonly endpoint: string;
  /** Members of the request beside `model`, `stream` and `stream_options`. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly toEvents: (asked: UsageAsked) => readonly string[];
  /** The fields of the record, whether or not the client asked for usage. */
  readonly record: Readonly<Record<string, unknown>>;
  /** Absent: for every `stream_options`. docs/endpoints.md names the limits that exclude some. */
  readonly isComparable?: (options: ClientStreamOptions | null | undefined) => boolean;
  /** The answer to any request, at an endpoint that takes no `stream_options`. */
  readonly told?: { readonly contentType: string; readonly body: Buffer };
  /** The answer to any request with `stream_options`. */
  readonly refusal?: { readonly status: number; readonly body: string };
}

/** A scripted engine: the column of the matrix. */
export interface ScriptedEngine {
  readonly name: string;
  /** The replica's `engine` in the configuration. */
  readonly engine: string;
  /** Reported by GET /version. */
  readonly version?: string;
  readonly contentType: string;
  /** Null: the engine answers 400 or 422. */
  readonly readAsked: (options: ClientStreamOptions | null | undefined) => UsageAsked | null;
  readonly cases: readonly EngineCase[];
}

/** The members if the condition holds, to be spread in the order in which the engine writes them. */
export function when<T extends object>(condition: boolean, members: T): T | Record<never, never> {
  return condition ? members : {};
}

/** The value of a member that must be a boolean or null; null if the engine refuses it. */
function readStrictly(flag: ClientFlag | undefined): boolean | null {
  if (flag === undefined || flag === null) return false;
  return typeof flag === 'boolean' ? flag : null;
}

/** A boolean of pydantic's lax mode. */
export function readLaxly(flag: ClientFlag | undefined): boolean | null {
  const text = String(flag ?? false).toLowerCase();
  if (/^(1|t|y|on|yes|true)$/.test(text)) return true;
  return /^(0|f|n|no|off|false)$/.test(text) ? false : null;
}

/** Only `include_usage: true` asks for usage; the engine has no running figures. */
export function readIncludeUsage(options: ClientStreamOptions | null | undefined): UsageAsked | null {
  const usage = readStrictly(options?.include_usage);
  return usage === null ? null : { usage, continuous: false };
}

/** The answer of an engine to this request body. */
export function answerOf(engine: ScriptedEngine, exchange: EngineCase, body: string): EngineAnswer {
  const { stream_options } = JSON.parse(body) as { stream_options?: ClientStreamOptions | null };
  const { refusal, told } = exchange;
  if (told !== undefined) return { status: 200, ...told };
  if (refusal !== undefined && stream_options !== undefined) {
    return { status: refusal.status, contentType: 'application/json', body: Buffer.from(refusal.body) };
  }
  const asked = engine.readAsked(stream_options);
  if (asked === null) {
    const error = { message: 'include_usage: not a valid boolean', type: 'BadRequestError' };
    return { status: 400, contentType: 'application/json', body: Buffer.from(JSON.stringify({ error })) };
  }
  const events = exchange.toEvents(asked);
  return { status: 200, contentType: engine.contentType, body: Buffer.from(events.join('')) };
}
