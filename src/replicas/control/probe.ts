import type { Dispatcher } from 'undici';
import type { RegisteredReplica } from './registry.ts';

/** What to ask a replica, and which answers are of use. */
export interface ProbeRequest {
  readonly path: string;
  readonly accept: string;
  readonly timeoutMs: number;
  /** Whether an answer with this status is read. Any other one fails at once. */
  readonly isWanted: (status: number) => boolean;
  readonly maxBytes: number;
  /** Whether a body of more than `maxBytes` is read to its end and cut off, or fails. */
  readonly onLongBody: 'truncate' | 'fail';
}

export interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends the gateway's own GET request to a replica; it has no X-Request-Id. Resolves with null if no answer that is
 * wanted arrives whole in time. Never rejects.
 */
export function probe(
  { connections, pathPrefix, config }: RegisteredReplica,
  request: ProbeRequest,
): Promise<ProbeAnswer | null> {
  const { apiKey } = config;
  const headers = ['Accept', request.accept, ...(apiKey ? ['Authorization', `Bearer ${apiKey}`] : [])];
  return new Promise((resolve) => {
    const handler = new ProbeHandler(request, resolve);
    connections.dispatch({ method: 'GET', path: pathPrefix + request.path, headers }, handler);
  });
}

/** Collects one answer. It is read to its end where possible, so that the connection can be used again. */
class ProbeHandler implements Dispatcher.DispatchHandler {
  readonly #request: ProbeRequest;
  readonly #resolve: (answer: ProbeAnswer | null) => void;
  readonly #deadline: NodeJS.Timeout;
  #controller: Dispatcher.DispatchController | null = null;
  #status = 0;
  readonly #chunks: Buffer[] = [];
  #keptBytes = 0;
  #isOver = false;

  constructor(request: ProbeRequest, resolve: (answer: ProbeAnswer | null) => void) {
    this.#request = request;
    this.#resolve = resolve;
    this.#deadline = setTimeout(() => this.#giveUp('probe timed out'), request.timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('probe timed out'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
    // A status below 200, such as 103, only announces the answer.
    if (status >= 200 && !this.#request.isWanted(status)) this.#giveUp('unwanted answer to a probe');
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { maxBytes, onLongBody } = this.#request;
    const restBytes = maxBytes - this.#keptBytes;
    if (chunk.length > restBytes && onLongBody === 'fail') {
      this.#giveUp('too long an answer to a probe');
      return;
    }
    const kept = chunk.subarray(0, restBytes);
    this.#keptBytes += kept.length;
    this.#chunks.push(kept);
  }

  onResponseEnd(): void {
    this.#finish({ status: this.#status, text: Buffer.concat(this.#chunks).toString('utf8') });
  }

  onResponseError(): void {
    this.#finish(null);
  }

  #giveUp(reason: string): void {
    this.#finish(null);
    this.#controller?.abort(new Error(reason));
  }

  #finish(answer: ProbeAnswer | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#resolve(answer);
  }
}
