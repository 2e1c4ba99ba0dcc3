import type { Dispatcher } from 'undici';
import type { RegisteredReplica } from './registry.ts';

/**
 * Asks a replica for a path. The request carries no X-Request-Id: it is the gateway's own. Resolves with whether a
 * status from 200 to 299 came in time; never rejects.
 */
export function probeHealth(
  { connections, pathPrefix, config }: RegisteredReplica,
  { path, timeoutMs }: { readonly path: string; readonly timeoutMs: number },
): Promise<boolean> {
  const { apiKey } = config;
  const headers = ['Accept', '*/*', ...(apiKey ? ['Authorization', `Bearer ${apiKey}`] : [])];
  return new Promise((resolve) => {
    const handler = new StatusHandler(resolve, timeoutMs);
    connections.dispatch({ method: 'GET', path: pathPrefix + path, headers }, handler);
  });
}

/** Waits for a status; the body is read to its end, so that the connection can be used again. */
class StatusHandler implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | null = null;
  readonly #resolve: (isOk: boolean) => void;
  readonly #deadline: NodeJS.Timeout;
  #isOk = false;
  #isOver = false;

  constructor(resolve: (isOk: boolean) => void, timeoutMs: number) {
    this.#resolve = resolve;
    this.#deadline = setTimeout(() => this.#giveUp(), timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('probe timed out'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
    this.#isOk = statusCode >= 200 && statusCode < 300;
  }

  onResponseData(): void {
    // What it says does not matter.
  }

  onResponseEnd(): void {
    this.#finish(this.#isOk);
  }

  onResponseError(): void {
    this.#finish(false);
  }

  #giveUp(): void {
    this.#finish(false);
    this.#controller?.abort(new Error('probe timed out'));
  }

  #finish(isOk: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#resolve(isOk);
  }
}
