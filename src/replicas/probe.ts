import type { Dispatcher } from 'undici';
import type { Engine } from '../config/config.ts';
import type { Connection, ConnectionAwareHandler } from './connections.ts';
import type { RegisteredReplica } from './registry.ts';
import type { ReplicaKnowledge } from './topology.ts';

const MAX_LIST_BYTES = 1024 * 1024;

/** `owned_by` in /v1/models, by engine. Anything else speaks the API of `openai`; TGI has to be named. */
const ENGINE_OF_OWNER: ReadonlyMap<unknown, Engine> = new Map([
  ['vllm', 'vllm'],
  ['sglang', 'sglang'],
  ['llamacpp', 'llamacpp'],
  ['library', 'ollama'],
]);

/**
 * Asks a replica's own GET /v1/models what it serves. The request carries no X-Request-Id: it is the
 * gateway's own. Returns null when the replica cannot be reached, says no, or answers with no model list.
 */
export async function probeModels(
  replica: RegisteredReplica,
  timeoutMs: number,
): Promise<ReplicaKnowledge | null> {
  const body = await fetchModelList(replica, timeoutMs);
  return body === null ? null : parseModelList(body);
}

/** Parses the answer of GET /v1/models; null when it is not a list of models. */
export function parseModelList(text: string): ReplicaKnowledge | null {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return null;
  }
  const data = isObject(list) ? list.data : undefined;
  if (!Array.isArray(data)) return null;
  const entries = data.filter(isObject);
  // A `*` of the configuration means any name; a replica that says it would take the prompts for others.
  const models = entries.map((entry) => entry.id).filter((id) => typeof id === 'string');
  const owner = entries.map((entry) => entry.owned_by).find((owned) => typeof owned === 'string');
  return { models: models.filter((id) => id !== '*'), engine: ENGINE_OF_OWNER.get(owner) ?? 'openai' };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function fetchModelList(replica: RegisteredReplica, timeoutMs: number): Promise<string | null> {
  const { apiKey } = replica.config;
  return new Promise((resolve) => {
    const handler = new ListHandler(resolve, timeoutMs);
    replica.connections.dispatch(
      {
        method: 'GET',
        path: `${replica.pathPrefix}/v1/models`,
        headers: ['Accept', 'application/json', ...(apiKey ? ['Authorization', `Bearer ${apiKey}`] : [])],
      },
      handler,
    );
  });
}

/** Collects a bounded 200 answer within a deadline. */
class ListHandler implements ConnectionAwareHandler {
  connection: Connection | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  readonly #chunks: Buffer[] = [];
  #sizeBytes = 0;
  readonly #resolve: (text: string | null) => void;
  readonly #deadline: NodeJS.Timeout;
  #isOver = false;

  constructor(resolve: (text: string | null) => void, timeoutMs: number) {
    this.#resolve = resolve;
    this.#deadline = setTimeout(() => this.#finish(null), timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('probe timed out'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
    // A 103 only announces the answer.
    if (statusCode >= 200 && statusCode !== 200) this.#finish(null);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#sizeBytes += chunk.length;
    if (this.#sizeBytes > MAX_LIST_BYTES) this.#finish(null);
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#finish(Buffer.concat(this.#chunks).toString('utf8'));
  }

  onResponseError(): void {
    this.#finish(null);
  }

  #finish(text: string | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#resolve(text);
    if (text === null) this.#controller?.abort(new Error('probe given up'));
  }
}
