import { z } from 'zod';
import { parseJson } from '#base/parsed';
import type { NeededRole } from '#config/secrets';
import type { Caller } from './access/caller.ts';
import type { AdminCollaborators } from './admin-collaborators.ts';
import { AdminError, type AdminErrorCode } from './admin-error.ts';
import { toJsonLine } from './in-turns.ts';

/** The body of a response. An iterable is sent piece by piece until it ends. */
export type ResponseBody = string | Uint8Array | AsyncIterable<string | Uint8Array>;

/** The content of a route's 200 response: its media type, its schema, and how a value is encoded. */
export interface Content<T> {
  readonly mediaType: string;
  /** Null if it is not JSON. */
  readonly schema: z.ZodType | null;
  readonly encode: (value: T) => ResponseBody;
}

/** JSON with this schema. The compiler checks handlers and the tests check responses; nothing is checked at run time. */
export function json<S extends z.ZodType>(schema: S): Content<z.output<S>> {
  return { mediaType: 'application/json', schema, encode: toJsonLine };
}

/** Another media type, whose bytes the handler returns. */
export function bytes(mediaType: string): Content<ResponseBody> {
  return { mediaType, schema: null, encode: (body) => body };
}

/** The names in braces of a path pattern, such as `name` in `/admin/replicas/{name}/drain`. */
type ParamNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never;

/** One call as its handler sees it. */
export interface Call<P extends string, Q extends z.ZodRawShape, B> {
  /** The path segments that the pattern names, percent-decoded. */
  readonly params: Readonly<Record<ParamNames<P>, string>>;
  /** The query parameters that the route defines. Others are ignored. */
  readonly query: Readonly<z.output<z.ZodObject<Q>>>;
  /** The body, parsed; undefined if the route defines none. */
  readonly body: B;
  /** Whose token the call has; null for a page, which needs none. */
  readonly caller: Caller | null;
  /** The header `Accept` of the request; empty if it has none. */
  readonly accept: string;
  /** Aborts when the client disconnects before it has the whole response, and when the gateway stops. */
  readonly signal: AbortSignal;
}

/** What a handler returns: the body of a 200 response, or an error. */
export type HandlerResult<T> =
  | { readonly body: T; readonly headers?: Readonly<Record<string, string>> }
  | AdminError;

/** One route as src/admin/routes/ defines it. */
interface RouteDefinition<P extends string, Q extends z.ZodRawShape, B, T> {
  readonly method: 'GET' | 'POST';
  /** A segment in braces matches any one segment. */
  readonly path: P;
  /** A description of each segment in braces. */
  readonly params?: Readonly<Record<ParamNames<P>, string>>;
  /** Unique. Generated clients use it as the name of the operation. */
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /**
   * Whether it is a page or a file that a page loads. Pages contain no data, need no token and are not part of the
   * OpenAPI document. A response with data is an API call and needs the token.
   */
  readonly isPage?: boolean;
  /** The weakest role that may call it. Default: `reader` for GET, `admin` for POST. */
  readonly role?: NeededRole;
  /** Whether a drainer may call it for its own replicas: `name` in the path is the replica. Default: false. */
  readonly isForDrainers?: boolean;
  /** Whether it takes the code of a link, and nothing else. Default: false, and no code is taken. */
  readonly isForLinks?: boolean;
  /** The query parameters. Each schema takes a string and may transform it. */
  readonly query?: Q;
  /** The schema of its body, which is JSON. Without it, a body is ignored. */
  readonly body?: z.ZodType<B>;
  /** The 200 response. */
  readonly response: { readonly description: string; readonly content: Content<T> };
  /** The codes of the errors specific to this route. Errors that any call can get are not listed. */
  readonly errors?: readonly AdminErrorCode[];
  readonly handle: (
    call: Call<P, Q, B>,
    collaborators: AdminCollaborators,
  ) => HandlerResult<T> | Promise<HandlerResult<T>>;
}

/** A call after its path was matched. */
export interface MatchedCall {
  readonly params: Readonly<Record<string, string>>;
  readonly search: URLSearchParams;
  readonly body: Buffer;
  readonly caller: Caller | null;
  readonly accept: string;
  readonly signal: AbortSignal;
}

/** A response that is ready to be sent. */
export interface EncodedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ResponseBody;
}

/** One row of the route table: its description for the OpenAPI document, and its behaviour. */
export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string | undefined;
  readonly isPage: boolean;
  /** The weakest role that may call it. */
  readonly role: NeededRole;
  readonly isForDrainers: boolean;
  readonly isForLinks: boolean;
  readonly params: Readonly<Record<string, string>>;
  readonly query: z.ZodObject;
  /** Null: it takes none. */
  readonly body: z.ZodType | null;
  readonly response: {
    readonly description: string;
    readonly mediaType: string;
    readonly schema: z.ZodType | null;
  };
  readonly errors: readonly AdminErrorCode[];
  readonly respond: (
    call: MatchedCall,
    collaborators: AdminCollaborators,
  ) => Promise<EncodedResponse | AdminError>;
}

/** Creates a row of the route table. The definition determines the types of its handler's arguments and result. */
export function defineRoute<
  const P extends string,
  T,
  Q extends z.ZodRawShape = Record<never, never>,
  B = undefined,
>(definition: RouteDefinition<P, Q, B, T>): Route {
  const {
    method,
    path,
    operationId,
    summary,
    description,
    isPage = false,
    role = method === 'GET' ? 'reader' : 'admin',
    isForDrainers = false,
    isForLinks = false,
    params = {},
    errors = [],
  } = definition;
  const { content } = definition.response;
  const query = z.object(definition.query ?? ({} as Q));
  return {
    method,
    path,
    operationId,
    summary,
    description,
    isPage,
    role,
    isForDrainers,
    isForLinks,
    params,
    query,
    body: definition.body ?? null,
    response: { description: definition.response.description, ...content },
    errors:
      definition.query === undefined && definition.body === undefined
        ? errors
        : ['invalid_request', ...errors],
    async respond({ params, search, body, accept, caller, signal }, collaborators) {
      const parsed = parseQuery(query, search);
      if (parsed instanceof AdminError) return parsed;
      const given = parseBody(definition.body, body);
      if (given instanceof AdminError) return given;
      const call = {
        params: params as Call<P, Q, B>['params'],
        query: parsed,
        body: given as B,
        accept,
        caller,
        signal,
      };
      const result = await definition.handle(call, collaborators);
      if (result instanceof AdminError) return result;
      const headers = { 'Content-Type': content.mediaType, ...result.headers };
      return { status: 200, headers, body: content.encode(result.body) };
    },
  };
}

/** Undefined: the route takes no body. What the body says is not repeated in an error. */
function parseBody(schema: z.ZodType | undefined, body: Buffer): unknown {
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(parseJson(body.toString('utf8')));
  if (parsed.success) return parsed.data;
  const path = parsed.error.issues[0]?.path.join('.') ?? '';
  const where = path === '' ? 'body' : `body.${path}`;
  return new AdminError('invalid_request', { param: where, message: `${where} is not what the API takes.` });
}

/** Rejects a parameter that is given twice: it would be unclear which value counts. */
function parseQuery<Q extends z.ZodRawShape>(
  schema: z.ZodObject<Q>,
  search: URLSearchParams,
): z.output<z.ZodObject<Q>> | AdminError {
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const [value, second] = search.getAll(name);
    if (second !== undefined) {
      return new AdminError('invalid_request', { param: name, message: `${name}: given more than once` });
    }
    if (value !== undefined) given[name] = value;
  }
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = String(issue?.path[0]);
  // The schemas' messages say what is expected and never repeat the given value.
  const message = given[param] === undefined ? 'missing' : issue?.message;
  return new AdminError('invalid_request', { param, message: `${param}: ${message}` });
}
