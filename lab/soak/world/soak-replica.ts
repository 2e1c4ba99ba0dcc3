import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import { type Answer, answerTo, type Body, embeddingsFor, modelList } from './answers.ts';

const FIRST_TOKEN_MS = 5;
const GAP_MS = 2;
/** As in uvicorn: idle connections close after it, even if a request is on its way. */
const KEEP_ALIVE_MS = 5_000;
const MAX_STORED = 20_000;

/** A replica of the soak: it has chats, completions, embeddings, responses that it keeps, and messages. */
export interface SoakReplica {
  readonly url: string;
  readonly port: number;
  /** The ids of the requests that are open. */
  readonly openIds: ReadonlySet<string>;
  /** Stops at once: open answers are cut. */
  close(): Promise<void>;
}

/** Starts a replica. Port 0: a free one. The responses that it has kept end with it. */
export async function startSoakReplica(name: string, port: number): Promise<SoakReplica> {
  const openIds = new Set<string>();
  const stored = new Set<string>();
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, keepAliveTimeoutBuffer: 0 });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const id = request.headers['x-request-id'];
    if (typeof id === 'string') {
      openIds.add(id);
      response.once('close', () => openIds.delete(id));
    }
    serve(request, response).catch((error: unknown) => {
      if (!response.destroyed && !request.destroyed) throw error;
    });
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split('?', 1)[0] ?? '';
    const storedId = /^\/v1\/responses\/([^/]+)$/.exec(path)?.[1];
    if (request.method === 'GET' && path === '/health') return void response.end();
    if (request.method === 'GET' && path === '/v1/models') return send(response, 200, modelList());
    if (storedId !== undefined) {
      const isKnown = request.method === 'DELETE' ? stored.delete(storedId) : stored.has(storedId);
      return send(response, isKnown ? 200 : 404, { id: storedId, object: 'response', replica: name });
    }
    const body = JSON.parse((await buffer(request)).toString()) as Body;
    if (path === '/v1/embeddings') return send(response, 200, embeddingsFor(body));
    if (path === '/v1/messages/count_tokens') return send(response, 200, { input_tokens: 9 });
    const previous = body.previous_response_id;
    if (previous !== undefined && !stored.has(previous)) return send(response, 404, NOT_FOUND);
    const answer = answerTo(path, body, name);
    if (answer === null) return send(response, 404, NOT_FOUND);
    if (answer.storedId !== null) keep(answer.storedId);
    if (body.stream === true) await stream(response, answer);
    else {
      await sleep(FIRST_TOKEN_MS + GAP_MS * answer.tokenEvents.length);
      send(response, 200, answer.whole);
    }
  }

  function keep(id: string): void {
    stored.add(id);
    if (stored.size > MAX_STORED) for (const oldest of stored.values().take(1)) stored.delete(oldest);
  }

  const listening = await listen(server, port);
  return {
    url: `http://127.0.0.1:${listening}`,
    port: listening,
    openIds,
    close: () => closeServer(server),
  };
}

const NOT_FOUND = { error: { message: 'not found', type: 'NotFoundError', code: 404 } };

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

/** Waits where the gateway does not read on. */
async function stream(response: ServerResponse, answer: Answer): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders();
  await sleep(FIRST_TOKEN_MS);
  for (const text of [answer.firstEvent, ...answer.tokenEvents]) {
    if (response.destroyed) return;
    if (!response.write(text)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    await sleep(GAP_MS);
  }
  response.end(answer.lastEvents);
}
