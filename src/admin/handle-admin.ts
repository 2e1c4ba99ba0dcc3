import type { IncomingMessage, ServerResponse } from 'node:http';
import { allows, isOwnReplica, type NeededRole, TOKEN_VARIABLES } from '#config/secrets';
import { toShownText } from '#wire';
import type { AdminAccess } from './access/admin-access.ts';
import type { Caller } from './access/caller.ts';
import type { FailedTokens } from './access/failed-tokens.ts';
import type { AdminCollaborators } from './admin-collaborators.ts';
import { ADMIN_ERRORS, AdminError } from './admin-error.ts';
import { sendResponse } from './listener/send-response.ts';
import type { EncodedResponse, Route } from './route.ts';
import { ROUTES } from './route-table.ts';

/** Decides which calls are answered. */
export interface AdminGuards {
  readonly access: AdminAccess;
  readonly failedTokens: FailedTokens;
  /** Whether a call with this `Host` is answered. */
  readonly isHostAllowed: (host: string | undefined) => boolean;
}

/** Creates the handler of the admin listener. */
export function createAdminHandler(
  guards: AdminGuards,
  collaborators: AdminCollaborators,
): (request: IncomingMessage, response: ServerResponse, body: Buffer) => void {
  async function respond(
    request: IncomingMessage,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<EncodedResponse | AdminError> {
    if (!guards.isHostAllowed(request.headers.host)) return new AdminError('host_not_allowed');
    const [path, query] = splitTarget(request.url ?? '');
    const found = findRoute(request.method ?? '', path);
    // Unknown paths need the token too: a client without it cannot find out which paths exist.
    const caller = found?.route.isPage === true ? null : identify(request, guards);
    if (caller instanceof AdminError) return caller;
    if (found === null && caller?.via === 'link') return new AdminError('unauthorized');
    if (found === null) return toUnknown(request.method ?? '', path, methodsOf(path));
    const refusal = caller === null ? null : findRefusal(caller, found);
    if (refusal !== null) return refusal;
    const { accept = '' } = request.headers;
    const search = new URLSearchParams(query);
    const call = { params: found.params, search, body, accept, caller, signal };
    return await found.route.respond(call, collaborators);
  }

  const logFailure = (error: unknown) => collaborators.log.error({ err: error }, 'admin call failed');

  return (request, response, body) => {
    const client = new AbortController();
    response.once('close', () => client.abort());
    respond(request, body, client.signal)
      .catch((error: unknown) => {
        logFailure(error);
        return new AdminError('internal_error');
      })
      .then((result) => sendResponse(response, result))
      .catch(logFailure);
  };
}

/** The error of a call without a route. `methods`: those that its path takes. */
function toUnknown(method: string, path: string, methods: readonly string[]): AdminError {
  const shown = toShownText(path);
  const allow = methods.join(', ');
  if (methods.length === 0)
    return new AdminError('not_found', {
      message: `There is no path ${shown} on the admin API: see GET /openapi.json.`,
    });
  return new AdminError('method_not_allowed', {
    message: `${shown} does not take ${toShownText(method)}, but ${allow}.`,
    allow,
  });
}

/** The error of a call that the token does not allow; null if it allows it. */
function findRefusal(caller: Caller, { route, params }: RouteMatch): AdminError | null {
  if ((caller.via === 'link') !== route.isForLinks) return new AdminError('unauthorized');
  if (caller.role === 'drainer') {
    const isAllowed = route.isForDrainers && isOwnReplica(params.name ?? '', caller);
    return isAllowed ? null : toWeakToken('drain_token', route.role);
  }
  if (allows(caller.role, route.role)) return null;
  return toWeakToken(caller.role === 'reader' ? 'read_only_token' : 'admin_token_required', route.role);
}

/** The error of a token that is too weak. It names the weakest one that is enough. */
function toWeakToken(
  code: 'drain_token' | 'read_only_token' | 'admin_token_required',
  needed: NeededRole,
): AdminError {
  const message = `${ADMIN_ERRORS[code].message} This call needs the token in ${TOKEN_VARIABLES[needed]}.`;
  return new AdminError(code, { message });
}

/** Whose token a call has, or the error that it gets. */
function identify(request: IncomingMessage, { access, failedTokens }: AdminGuards): Caller | AdminError {
  const identified = access.identify(request.headers.authorization);
  const admitted = failedTokens.admit(request.socket.remoteAddress, identified);
  switch (admitted) {
    case 'missing':
    case 'wrong':
      return new AdminError('unauthorized');
    case 'limited':
      return new AdminError('too_many_wrong_tokens');
    case 'admin_disabled':
      return new AdminError('admin_disabled');
    default:
      return admitted;
  }
}

/** Splits a request target into its path and query, both as sent. */
function splitTarget(target: string): readonly [path: string, query: string] {
  const mark = target.indexOf('?');
  return mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)];
}

/** A route and the values of the parameters in its path pattern. */
interface RouteMatch {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

const ROWS = ROUTES.map((route) => ({ route, pattern: toPattern(route.path) }));

/**
 * The route of a call; null if no route has this path and method. HEAD uses the route of GET (RFC 9110 9.3.2). OPTIONS has no
 * route: the dashboard has the origin of the API, and pages of other origins must not call it.
 */
function findRoute(method: string, path: string): RouteMatch | null {
  const wanted = method === 'HEAD' ? 'GET' : method;
  for (const { route, pattern } of ROWS) {
    const found = route.method === wanted ? pattern.exec(path) : null;
    if (found !== null) return { route, params: decodeAll(found.groups ?? {}) };
  }
  return null;
}

/** The methods that a path takes; often none. */
function methodsOf(path: string): readonly string[] {
  const found = ROWS.filter(({ pattern }) => pattern.test(path)).map(({ route }) => route.method);
  return found.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}

/** Converts a path such as `/admin/replicas/{name}/drain` to a pattern. A segment in braces matches any one segment. */
function toPattern(path: string): RegExp {
  const segments = path.split('/').map((segment) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    return name === undefined ? RegExp.escape(segment) : `(?<${name}>[^/]+)`;
  });
  return new RegExp(`^${segments.join('/')}$`);
}

function decodeAll(groups: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decode(value)]));
}

/** Returns a malformed segment unchanged. No object has such a name, so the route answers that it was not found. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
