import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeServer, listen } from '#testkit/servers/local-server.ts';

/** How often a server that answers at once looks what has come. */
const LOOK_EVERY_MS = 100;
const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});
const EVENTS = [
  { choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null }] },
  { choices: [{ index: 0, delta: { content: ' there' }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } },
].map(
  (event) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'm', ...event })}\n\n`,
);

/** A message that a server has received and not yet answered. */
export interface Held {
  /** Sends the answer without its end. */
  begin(isStream: boolean): Promise<void>;
  /** Sends the rest of the answer. */
  end(): Promise<void>;
}

/** The whole messages that a server has received, in their order. */
export class Inbox {
  readonly #received: Held[] = [];
  #waiting: ((held: Held) => void) | null = null;

  /** Holds a message until it is answered. */
  async take(message: IncomingMessage, response: ServerResponse): Promise<void> {
    await buffer(message);
    let rest = '{}';
    const held: Held = {
      begin: async (isStream) => {
        response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
        if (!isStream) response.setHeader('content-length', Buffer.byteLength(ANSWER));
        rest = isStream ? 'data: [DONE]\n\n' : ANSWER.slice(-1);
        response.write(isStream ? EVENTS.join('') : ANSWER.slice(0, -1));
      },
      end: async () => {
        if (response.closed) return;
        response.end(rest);
        await once(response, 'close');
      },
    };
    if (this.#waiting === null) this.#received.push(held);
    else this.#waiting(held);
  }

  /** The oldest that was not taken yet. */
  async next(): Promise<Held> {
    const held = this.#received.shift();
    if (held !== undefined) return held;
    const { promise, resolve } = Promise.withResolvers<Held>();
    this.#waiting = resolve;
    const received = await promise;
    this.#waiting = null;
    return received;
  }

  /** Answers what was received, and what arrives in this time. */
  async answerFor(durationMs: number): Promise<void> {
    const untilMs = performance.now() + durationMs;
    do {
      for (const held of this.#received.splice(0)) await held.end();
      await sleep(LOOK_EVERY_MS);
    } while (performance.now() < untilMs || this.#received.length > 0);
  }
}

/** A server whose messages wait in an inbox. */
export interface HoldingServer extends AsyncDisposable {
  readonly url: string;
  readonly inbox: Inbox;
}

/** Starts a server whose messages wait to be answered. */
export async function startHoldingServer(): Promise<HoldingServer> {
  const inbox = new Inbox();
  const server = createServer((message, response) => {
    // The gateway asks on its own whether a replica answers: not part of a request.
    if (message.method === 'GET') response.end('{"object":"list","data":[{"id":"m"}]}');
    else void inbox.take(message, response);
  });
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}`, inbox, [Symbol.asyncDispose]: () => closeServer(server) };
}
