import { setTimeout } from 'node:timers/promises';
import type { StartedGateway } from '../start-gateway.ts';

/** A load that something is waited for under. */
export interface ChatPace {
  /** Each sends one chat after another. */
  readonly clientCount: number;
  /** How long a client waits between an answer and its next chat; 0: not at all, for a race that a pause would hide. */
  readonly pauseMs: number;
  /** What the bodies have besides a model and a message. */
  readonly members?: object;
  /** Called with each answer, and its whole text. */
  readonly onAnswer?: (response: Response, text: string) => void;
}

/**
 * Sends chats until it is disposed of; none is on its way then. It is for tests that wait for something which takes its time
 * anyway, and would send thousands of requests meanwhile if each followed the one before at once.
 */
export function keepChatting(
  gateway: Pick<StartedGateway, 'chat'>,
  { clientCount, pauseMs, members, onAnswer }: ChatPace,
): AsyncDisposable {
  let isOver = false;
  const runClient = async () => {
    while (!isOver) {
      const response = await gateway.chat(members);
      onAnswer?.(response, await response.text());
      if (pauseMs > 0) await setTimeout(pauseMs);
    }
  };
  const clients = Promise.all(Array.from({ length: clientCount }, runClient));
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      await clients;
    },
  };
}
