import type { Dispatcher } from 'undici';
import type { Engine } from '../../config/config.ts';
import type { ReplicaKnowledge } from '../pool-snapshot.ts';
import type { RegisteredReplica } from './registry.ts';

const MAX_LIST_BYTES = 1024 * 1024;
const MAX_VERSION_BYTES = 4096;
/** What is looked at of a version; what follows says which build it is. */
const RELEASE = /^\d{1,4}\.\d{1,4}\.\d{1,4}/;

/** What a model list tells. */
export type ModelListing = Pick<ReplicaKnowledge, 'models' | 'engine'>;

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
): Promise<ModelListing | null> {
  const body = await fetchText(replica, { path: '/v1/models', maxBytes: MAX_LIST_BYTES, timeoutMs });
  return body === null ? null : parseModelList(body);
}

/** Asks a vLLM for its release by GET /version. Null when it does not tell, as above. */
export async function probeVersion(replica: RegisteredReplica, timeoutMs: number): Promise<string | null> {
  const body = await fetchText(replica, { path: '/version', maxBytes: MAX_VERSION_BYTES, timeoutMs });
  return body === null ? null : parseVersion(body);
}

/** Parses the answer of GET /version: the three numbers of the release, or null. */
function parseVersion(text: string): string | null {
  const answer = parseJson(text);
  const version = isObject(answer) ? answer.version : undefined;
  return typeof version === 'string' ? (RELEASE.exec(version)?.[0] ?? null) : null;
}

/** Parses the answer of GET /v1/models; null when it is not a list of models. */
export function parseModelList(text: string): ModelListing | null {
  const list = parseJson(text);
  const data = isObject(list) ? list.data : undefined;
  if (!Array.isArray(data)) return null;
  const entries = data.filter(isObject);
  // A `*` of the configuration means any name; a replica that says it would take the prompts for others.
  const models = entries.map((entry) => entry.id).filter((id) => typeof id === 'string');
  const owner = entries.map((entry) => entry.owned_by).find((owned) => typeof owned === 'string');
  return { models: models.filter((id) => id !== '*'), engine: ENGINE_OF_OWNER.get(owner) ?? 'openai' };
}

/** Undefined if it is no JSON: V8's message quotes its input, and is not passed on. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

interface ProbeRequest {
  readonly path: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

function fetchText(
  replica: RegisteredReplica,
  { path, maxBytes, timeoutMs }: ProbeRequest,
): Promise<string | null> {
  const { apiKey } = replica.config;
  return new Promise((resolve) => {
    const handler = new ProbeHandler(resolve, maxBytes, timeoutMs);
    replica.connections.dispatch(
      {
        method: 'GET',
        path: replica.pathPrefix + path,
        headers: ['Accept', 'application/json', ...(apiKey ? ['Authorization', `Bearer ${apiKey}`] : [])],
      },
      handler,
    );
  });
}

/** Collects a bounded 200 answer within a deadline. */
class ProbeHandler implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | null = null;
  readonly #chunks: Buffer[] = [];
  #sizeBytes = 0;
  readonly #maxBytes: number;
  readonly #resolve: (text: string | null) => void;
  readonly #deadline: NodeJS.Timeout;
  #isOver = false;

  constructor(resolve: (text: string | null) => void, maxBytes: number, timeoutMs: number) {
    this.#resolve = resolve;
    this.#maxBytes = maxBytes;
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
    if (this.#sizeBytes > this.#maxBytes) this.#finish(null);
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
