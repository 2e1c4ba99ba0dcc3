import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { closeServer, listen } from './local-server.ts';

/** A call of the admin API: `POST /admin/replicas/a/drain?…`. */
type Call = string;

/** Stands before an admin API, sees each call, and can keep one from being made or answered. */
export interface AdminProxy extends AsyncDisposable {
  readonly url: string;
  /**
   * Holds the first call from now on that is meant, for ever: `before` it reaches the gateway, or `after` the gateway has
   * answered. Resolves when it does.
   */
  hold(when: 'before' | 'after', isMeant: (call: Call) => boolean): Promise<void>;
}

/** Starts the proxy. `onCall` runs before each call is passed on. */
export async function startAdminProxy(
  target: string,
  onCall: (call: Call) => Promise<void>,
): Promise<AdminProxy> {
  let held: { when: string; isMeant: (call: Call) => boolean; reached: () => void } | null = null;
  const takeHold = (when: 'before' | 'after', call: Call) => {
    if (held?.when !== when || !held.isMeant(call)) return false;
    held.reached();
    held = null;
    return true;
  };
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '' } = request;
    const call = `${method} ${url}`;
    const sent = await buffer(request);
    await onCall(call);
    if (takeHold('before', call)) return;
    const answer = await fetch(target + url, {
      method,
      headers: toPassedHeaders(request),
      ...(sent.length === 0 ? {} : { body: new Uint8Array(sent) }),
    });
    const body = await answer.text();
    if (takeHold('after', call)) return;
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(body);
  };
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    hold(when, isMeant) {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = { when, isMeant, reached: resolve };
      return promise;
    },
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

function toPassedHeaders({ headers }: IncomingMessage): Record<string, string> {
  const { authorization = '', 'content-type': type } = headers;
  return { authorization, ...(type === undefined ? {} : { 'content-type': type }) };
}
