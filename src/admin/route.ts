import { z } from 'zod';
import type { AdminServices } from './admin-services.ts';
import type { Body, Content } from './content.ts';
import { Refusal, type RefusalCode } from './refusal.ts';

/** The names in braces of a path pattern, such as `name` in `/admin/replicas/{name}/drain`. */
type ParamNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never;

/** One call as its handler sees it. */
export interface Call<P extends string, Q extends z.ZodRawShape> {
  /** The parts of the path that the pattern names, percent-decoded. */
  readonly params: Readonly<Record<ParamNames<P>, string>>;
  /** The parameters of the query that the route names; others are ignored. */
  readonly query: Readonly<z.output<z.ZodObject<Q>>>;
  /** Aborts when the caller leaves before it has the whole answer, and when the gateway stops. */
  readonly signal: AbortSignal;
}

/** What a handler answers: a body with status 200, or a no. */
export type Reply<T> = { readonly body: T; readonly headers?: Readonly<Record<string, string>> } | Refusal;

/** One route as it is written in src/admin/routes/. */
interface RouteDefinition<P extends string, Q extends z.ZodRawShape, T> {
  readonly method: 'GET' | 'POST';
  /** A segment in braces stands for any one segment. */
  readonly path: P;
  /** What each segment in braces stands for. */
  readonly params?: Readonly<Record<ParamNames<P>, string>>;
  /** Unique; what generated clients call it. */
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /**
   * A page without data for people, and what it loads: answered with and without a token, and no part of the
   * OpenAPI document. Whatever holds data is an API call and needs the token.
   */
  readonly isPage?: boolean;
  /** The query's parameters. Each takes a text and may turn it into something else. */
  readonly query?: Q;
  /** What the 200 holds. */
  readonly answer: { readonly description: string; readonly content: Content<T> };
  /** The codes of this route's own refusals; those that any call can get are not repeated. */
  readonly refusals?: readonly RefusalCode[];
  readonly handle: (call: Call<P, Q>, services: AdminServices) => Reply<T> | Promise<Reply<T>>;
}

/** A call as it is after the path was matched. */
export interface MatchedCall {
  readonly params: Readonly<Record<string, string>>;
  readonly search: URLSearchParams;
  readonly signal: AbortSignal;
}

/** An answer that is ready to be sent. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
}

/** One row of the table of routes: what it is, for the OpenAPI document, and what it does. */
export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string | undefined;
  readonly isPage: boolean;
  readonly params: Readonly<Record<string, string>>;
  readonly query: z.ZodObject;
  readonly answer: {
    readonly description: string;
    readonly mediaType: string;
    readonly schema: z.ZodType | null;
  };
  readonly refusals: readonly RefusalCode[];
  readonly respond: (call: MatchedCall, services: AdminServices) => Promise<Answer | Refusal>;
}

/** Makes a row of the table: inside, what the handler gets and gives is typed by the row itself. */
export function defineRoute<const P extends string, T, Q extends z.ZodRawShape = Record<never, never>>(
  definition: RouteDefinition<P, Q, T>,
): Route {
  const {
    method,
    path,
    operationId,
    summary,
    description,
    isPage = false,
    params = {},
    refusals = [],
  } = definition;
  const { content } = definition.answer;
  const query = z.object(definition.query ?? ({} as Q));
  return {
    ...{ method, path, operationId, summary, description, isPage, params, query },
    answer: { description: definition.answer.description, ...content },
    refusals: definition.query === undefined ? refusals : ['invalid_request', ...refusals],
    async respond({ params, search, signal }, services) {
      const parsed = parseQuery(query, search);
      if (parsed instanceof Refusal) return parsed;
      const call = { params: params as Call<P, Q>['params'], query: parsed, signal };
      const reply = await definition.handle(call, services);
      if (reply instanceof Refusal) return reply;
      const headers = { 'Content-Type': content.mediaType, ...reply.headers };
      return { status: 200, headers, body: content.encode(reply.body) };
    },
  };
}

/** A parameter that is given twice has no value: nobody could say which one counts. */
function parseQuery<Q extends z.ZodRawShape>(
  schema: z.ZodObject<Q>,
  search: URLSearchParams,
): z.output<z.ZodObject<Q>> | Refusal {
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const [value, second] = search.getAll(name);
    if (second !== undefined) {
      return new Refusal('invalid_request', { param: name, message: `${name}: given more than once` });
    }
    if (value !== undefined) given[name] = value;
  }
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = String(issue?.path[0]);
  // The schemas' messages say what is expected, never what was given.
  return new Refusal('invalid_request', { param, message: `${param}: ${issue?.message}` });
}
