import { once } from 'node:events';
import OpenAI from 'openai';
import { onTestFinished } from 'vitest';
import { createSimulatedReplica, type SimulatedReplica } from '../../src/simulate/create-replica.ts';
import type {
  ServedRequest,
  SimulatedReplicaCollaborators,
  SimulatedReplicaSettings,
} from '../../src/simulate/settings.ts';

/** A started replica with what a test asks of it. */
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
  const ended = new EventTarget();
  const served: ServedRequest[] = [];
  const onServed = (request: ServedRequest): void => {
    served.push(request);
    ended.dispatchEvent(new Event('served'));
  };
  const replica = createSimulatedReplica(
    { ttftMs: 0, gapMs: 0, tokens: 6, ...settings },
    { onServed, ...collaborators },
  );
  const { url } = await replica.start();
  onTestFinished(() => replica.close());
  return {
    replica,
    url,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 }),
    served,
    async nextServed() {
      const position = served.length;
      await once(ended, 'served');
      const request = served[position];
      if (request === undefined) throw new Error('no request ended');
      return request;
    },
    post: (path, body, init) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
      }),
  };
}

/** Time that passes only while somebody sleeps. */
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
