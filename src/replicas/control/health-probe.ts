import type { Dispatcher } from 'undici';
import type { RegisteredReplica } from './registry.ts';

/** What of an answer's body is looked at. */
const MAX_TEXT_BYTES = 1024;

/** A replica's answer: its status, and the beginning of its body. */
export interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Asks a replica for a path. The request carries no X-Request-Id: it is the gateway's own. Resolves with the answer,
 * or with null if none came whole in time; never rejects.
 */
export function probeHealth(
  { connections, pathPrefix, config }: RegisteredReplica,
  { path, timeoutMs }: { readonly path: string; readonly timeoutMs: number },
): Promise<ProbeAnswer | null> {
  const { apiKey } = config;
  const headers = ['Accept', '*/*', ...(apiKey ? ['Authorization', `Bearer ${apiKey}`] : [])];
  return new Promise((resolve) => {
    const handler = new AnswerHandler(resolve, timeoutMs);
    connections.dispatch({ method: 'GET', path: pathPrefix + path, headers }, handler);
  });
}

/** Waits for an answer, which is read to its end, so that the connection can be used again. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | null = null;
  readonly #resolve: (answer: ProbeAnswer | null) => void;
  readonly #deadline: NodeJS.Timeout;
  #status = 0;
  #text = '';
  #isOver = false;

  constructor(resolve: (answer: ProbeAnswer | null) => void, timeoutMs: number) {
    this.#resolve = resolve;
    this.#deadline = setTimeout(() => this.#giveUp(), timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('probe timed out'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
    this.#status = statusCode;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#text.length < MAX_TEXT_BYTES) this.#text += chunk.toString('latin1', 0, MAX_TEXT_BYTES);
  }

  onResponseEnd(): void {
    this.#finish({ status: this.#status, text: this.#text });
  }

  onResponseError(): void {
    this.#finish(null);
  }

  #giveUp(): void {
    this.#finish(null);
    this.#controller?.abort(new Error('probe timed out'));
  }

  #finish(answer: ProbeAnswer | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#resolve(answer);
  }
}
