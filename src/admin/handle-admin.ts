import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AdminServices } from './admin-services.ts';
import { createAuth } from './auth.ts';
import { createRouteMatcher } from './match-route.ts';
import { Refusal } from './refusal.ts';
import type { Answer, Route } from './route.ts';
import { ROUTES } from './route-table.ts';
import { sendAnswer } from './send-answer.ts';

/** Creates the handler of the admin listener. Without a token every call is refused. */
export function createAdminHandler(
  token: string | undefined,
  services: AdminServices,
): (request: IncomingMessage, response: ServerResponse) => void {
  const authorize = createAuth(token);
  const match = createRouteMatcher(ROUTES);

  async function answer(request: IncomingMessage, signal: AbortSignal): Promise<Answer | Refusal> {
    const [path, query] = splitTarget(request.url ?? '');
    const found = match(request.method ?? '', path);
    const decision = isOpen(found?.route) ? 'allowed' : authorize(request.headers.authorization);
    if (decision !== 'allowed') return new Refusal(decision);
    if (found === null) return new Refusal('not_found');
    const call = { params: found.params, search: new URLSearchParams(query), signal };
    return await found.route.respond(call, services);
  }

  const logFailure = (error: unknown) => services.log.error({ err: error }, 'admin call failed');

  return (request, response) => {
    const caller = new AbortController();
    response.once('close', () => caller.abort());
    answer(request, caller.signal)
      .catch((error: unknown) => {
        logFailure(error);
        return new Refusal('internal_error');
      })
      .then((given) => sendAnswer(response, given))
      .catch(logFailure);
  };
}

/** What is not there is as closed as the rest: nobody without the token learns which paths exist. */
function isOpen(route: Route | undefined): boolean {
  return route?.isPage === true;
}

/** The path and the query of a request target, as they were sent. */
function splitTarget(target: string): readonly [path: string, query: string] {
  const mark = target.indexOf('?');
  return mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)];
}
