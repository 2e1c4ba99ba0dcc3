import type { Dispatcher } from 'undici';
import { startDeadline } from '#otel/base';
import { codeOf, type ReachabilityReason, toConnectionReason } from '#replicas/reachability';
import type { RegisteredReplica } from '#replicas/registry';

/** What to ask a replica, and which answers are of use. */
export interface ProbeRequest {
  readonly path: string;
  readonly accept: string;
  readonly timeoutMs: number;
  /** JSON to POST; without it the request is a GET. */
  readonly body?: string;
  /** Whether the body of an answer with this status is read. */
  readonly isWanted: (status: number) => boolean;
  readonly maxBytes: number;
  /** Reads the body of a wanted answer as it comes: then the answer has no text. */
  readonly onChunk?: (chunk: Buffer) => void;
  /** Whether of a body of more than `maxBytes` the beginning is kept, or nothing. */
  readonly onLongBody: 'truncate' | 'ignore';
}

/** What came back: an answer, or the reason why there is none. */
export type ProbeResult = ProbeAnswer | ProbeFailure;

export interface ProbeAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** Empty if the body was not read. */
  readonly text: string;
}

interface ProbeFailure {
  readonly kind: 'failure';
  readonly reason: ReachabilityReason;
  /** The code of the error of Node or undici; empty if it has none. */
  readonly code: string;
}

/** A server to probe: a registered replica, or one that is none yet. */
export type ProbeTarget = Pick<RegisteredReplica, 'connections' | 'pathPrefix' | 'config'>;

/** Sends the gateway's own request to a replica; it has no X-Request-Id. Never rejects. */
export function probe(
  { connections, pathPrefix, config }: ProbeTarget,
  request: ProbeRequest,
): Promise<ProbeResult> {
  const { apiKey, url } = config;
  const { body, accept } = request;
  const headers = [
    ...['Accept', accept],
    ...(apiKey ? ['Authorization', `Bearer ${apiKey}`] : []),
    ...(body === undefined ? [] : ['Content-Type', 'application/json']),
  ];
  const method = body === undefined ? 'GET' : 'POST';
  return new Promise((resolve) => {
    const handler = new ProbeHandler(request, url.startsWith('https:'), resolve);
    // Always on a new connection: it shows that the replica accepts them, and a kept one may turn out dead.
    connections.dispatch(
      { method, path: pathPrefix + request.path, headers, body: body ?? null, reset: true },
      handler,
    );
  });
}

/** Collects one answer. */
class ProbeHandler implements Dispatcher.DispatchHandler {
  readonly #request: ProbeRequest;
  readonly #isTls: boolean;
  readonly #resolve: (result: ProbeResult) => void;
  readonly #endDeadline: () => void;
  #controller: Dispatcher.DispatchController | null = null;
  #status = 0;
  readonly #chunks: Buffer[] = [];
  #keptBytes = 0;
  #isOver = false;

  constructor(request: ProbeRequest, isTls: boolean, resolve: (result: ProbeResult) => void) {
    this.#request = request;
    this.#isTls = isTls;
    this.#resolve = resolve;
    this.#endDeadline = startDeadline(request.timeoutMs, () => this.#onDeadline());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('probe timed out'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
    // A status below 200, such as 103, only announces the answer.
    if (status >= 200 && !this.#request.isWanted(status)) this.#finishEarly('unwanted answer to a probe');
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { maxBytes, onLongBody } = this.#request;
    const restBytes = maxBytes - this.#keptBytes;
    if (chunk.length > restBytes && onLongBody === 'ignore') {
      this.#finishEarly('too long an answer to a probe');
      return;
    }
    const kept = chunk.subarray(0, restBytes);
    this.#keptBytes += kept.length;
    if (this.#request.onChunk === undefined) this.#chunks.push(kept);
    else this.#request.onChunk(kept);
  }

  onResponseEnd(): void {
    const text = Buffer.concat(this.#chunks).toString('utf8');
    this.#finish({ kind: 'answer', status: this.#status, text });
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: unknown): void {
    const reason = toConnectionReason(error, this.#isTls && !this.#isConnected);
    this.#finish({ kind: 'failure', reason, code: codeOf(error) });
  }

  /** The request is written when there is a connection. */
  get #isConnected(): boolean {
    return this.#controller !== null;
  }

  #onDeadline(): void {
    this.#finish({ kind: 'failure', reason: this.#isConnected ? 'no_answer' : 'connect_timeout', code: '' });
    this.#controller?.abort(new Error('probe timed out'));
  }

  /** Does without the body. */
  #finishEarly(reason: string): void {
    this.#finish({ kind: 'answer', status: this.#status, text: '' });
    this.#controller?.abort(new Error(reason));
  }

  #finish(result: ProbeResult): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#endDeadline();
    this.#resolve(result);
  }
}
