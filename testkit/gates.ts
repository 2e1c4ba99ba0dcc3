import { answerJson, COMPLETION, type Script } from './fake-replica.ts';

/** A script for replicas whose requests wait for the test. */
export interface Gate {
  readonly script: Script;
  /** Lets the requests that wait go on, and all later ones. */
  readonly open: () => void;
}

/** Answers nothing before it is opened. Then it behaves as `script`, by default with a chat completion. */
export function createGate(script: Script = answerJson(COMPLETION)): Gate {
  const { promise: isOpen, resolve: open } = Promise.withResolvers<void>();
  return {
    open,
    script: async (exchange) => {
      await isOpen;
      await script(exchange);
    },
  };
}

/** Streams the first pieces at once, and `rest` when it is opened. */
export function createStreamGate(begun: readonly string[], rest: string): Gate {
  const { promise: isOpen, resolve: open } = Promise.withResolvers<void>();
  return {
    open,
    script: async ({ request, head, write, end }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      for (const piece of begun) await write(piece);
      await isOpen;
      end(rest);
    },
  };
}
