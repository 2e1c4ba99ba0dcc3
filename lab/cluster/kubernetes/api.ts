import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

/** What each object of the API has. */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
  };
}

/** A change of an object, or the end of a watch (`ERROR`: a Status). */
export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: T;
}

/** A list of objects. */
export interface KubernetesList<T> {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly T[];
}

/** The API server has refused a call. */
export class RefusedCall extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'RefusedCall';
    this.status = status;
  }
}

/** Who calls which API server. */
export interface ApiAccess {
  readonly origin: string;
  /** PEM. */
  readonly ca: string;
  readonly token: string;
}

const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
} as const;

/** The API of a real API server. */
export class KubernetesApi {
  readonly #origin: string;
  readonly #token: string;
  readonly #agent: Agent;

  constructor({ origin, ca, token }: ApiAccess) {
    this.#origin = origin;
    this.#token = token;
    this.#agent = new Agent({ ca, keepAlive: true });
  }

  /** Reads an object. Rejects with a RefusedCall. */
  async get<T>(path: string): Promise<T> {
    return (await this.#call('GET', path)) as T;
  }

  async create<T>(path: string, object: object): Promise<T> {
    return (await this.#call('POST', path, object)) as T;
  }

  async replace(path: string, object: object): Promise<void> {
    await this.#call('PUT', path, object);
  }

  async patch(path: string, patch: object, type: keyof typeof PATCH_TYPES = 'merge'): Promise<void> {
    await this.#call('PATCH', path, patch, PATCH_TYPES[type]);
  }

  /** Deletes an object; that there is none is no failure. */
  async delete(path: string, options: object = {}): Promise<void> {
    await this.#call('DELETE', path, { apiVersion: 'v1', kind: 'DeleteOptions', ...options }).catch(
      (error: unknown) => {
        if (!(error instanceof RefusedCall && [404, 409].includes(error.status))) throw error;
      },
    );
  }

  /** The changes of a list after a position, until the signal, or until the API server ends the watch. */
  async *watch<T>(path: string, signal: AbortSignal): AsyncGenerator<WatchEvent<T>, void> {
    const response = await this.#send('GET', path, undefined, undefined, signal);
    if (response.statusCode !== 200) throw await toRefusal(response);
    for await (const line of createInterface({ input: response })) yield JSON.parse(line) as WatchEvent<T>;
  }

  close(): void {
    this.#agent.destroy();
  }

  async #call(method: string, path: string, body?: object, type = 'application/json'): Promise<unknown> {
    const response = await this.#send(method, path, body, type);
    if ((response.statusCode ?? 0) >= 400) throw await toRefusal(response);
    return JSON.parse(await text(response));
  }

  async #send(
    method: string,
    path: string,
    body: object | undefined,
    type = 'application/json',
    signal?: AbortSignal,
  ): Promise<IncomingMessage> {
    const content = body === undefined ? '' : JSON.stringify(body);
    const outgoing = request(this.#origin + path, {
      method,
      agent: this.#agent,
      ...(signal === undefined ? {} : { signal }),
      headers: {
        authorization: `Bearer ${this.#token}`,
        'content-type': type,
        accept: 'application/json',
        // Node sends the body of a DELETE without any framing otherwise.
        'content-length': Buffer.byteLength(content),
      },
    });
    outgoing.end(content);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return response;
  }
}

async function toRefusal(response: IncomingMessage): Promise<RefusedCall> {
  return new RefusedCall(response.statusCode ?? 0, (await text(response)).slice(0, 500));
}
