import OpenAI from 'openai';
import { onTestFinished } from 'vitest';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import type { SimulatedReplica } from '../../src/simulate/create-replica.ts';
import type {
  ServedRequest,
  SimulatedReplicaCollaborators,
  SimulatedReplicaSettings,
} from '../../src/simulate/settings.ts';

/** A started replica, and what tests do with it. */
export interface Started {
  readonly replica: SimulatedReplica;
  readonly url: string;
  readonly client: OpenAI;
  /** The requests that have ended, oldest first. */
  readonly served: readonly ServedRequest[];
  /** Resolves when the next request ends. */
  nextServed(): Promise<ServedRequest>;
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
}

/** Starts a replica that answers at once, unless the settings say otherwise, and closes it after the test. */
export async function startReplica(
  settings: Partial<SimulatedReplicaSettings> = {},
  collaborators: Partial<SimulatedReplicaCollaborators> = {},
): Promise<Started> {
  const { replica, url, served } = await startSimulatedReplica(
    { models: ['demo'], tokens: 6, ...settings },
    collaborators,
  );
  onTestFinished(() => replica.close());
  return {
    replica,
    url,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 }),
    served: served.items,
    async nextServed() {
      const position = served.items.length;
      const requests = await served.count(position + 1);
      return requests[position] as ServedRequest;
    },
    post: (path, body, init) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
      }),
  };
}

/** A clock that advances only during a sleep. */
export function virtualTime(): Pick<SimulatedReplicaCollaborators, 'now' | 'sleep'> & {
  elapsedMs(): number;
} {
  let nowMs = 0;
  return {
    now: () => nowMs,
    async sleep(ms) {
      nowMs += ms;
    },
    elapsedMs: () => nowMs,
  };
}

/** The data of each event of a stream's text, parsed but for `[DONE]`. */
export function eventsOf(text: string): readonly unknown[] {
  return text
    .split('\n\n')
    .filter((part) => part !== '')
    .map((part) => part.replace(/^data: /, ''))
    .map((data) => (data === '[DONE]' ? data : JSON.parse(data)));
}
