import type { StoredResponse, StoredResponses } from '../../replicas/shared/stored-responses.ts';
import type { Channel, ChannelListener } from '../redis/redis-channel.ts';

/** What an exchange works with. A pino logger fits as `log`. */
export interface ResponseExchangeCollaborators {
  readonly storedResponses: StoredResponses;
  readonly openChannel: (listener: ChannelListener) => Channel;
  readonly log: { warn(fields: object, message: string): void };
}

/** Responses in one message. */
const MAX_IN_MESSAGE = 256;
/** A response in a message: its words in the order of `wordsOf`, in hexadecimal. */
const MESSAGE = /^(?:[0-9a-f]{72}){1,256}$/;
const WORD_CHARS = 8;
const WORDS = 9;

/**
 * Tells the other gateways of a fleet which replica and model made which response, and learns it from them. A message
 * that is lost means that a gateway does not know a response: nothing waits for the exchange.
 */
export class ResponseExchange {
  readonly #collaborators: ResponseExchangeCollaborators;
  #channel: Channel | null = null;
  #isSending = false;

  constructor(collaborators: ResponseExchangeCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Whether responses are exchanged from now on. */
  configure(isOn: boolean): void {
    if (!isOn) {
      this.#channel?.close();
      this.#channel = null;
    } else if (this.#channel === null) {
      const { openChannel, log } = this.#collaborators;
      this.#channel = openChannel({
        onMessage: (message) => this.#learn(message),
        onRefused: (reason) =>
          log.warn({ reason }, 'the server does not permit to share stored responses: see fleet.md'),
      });
      void this.#send();
    }
  }

  #learn(message: string): void {
    for (const response of parseMessage(message)) this.#collaborators.storedResponses.learn(response);
  }

  /** Sends the news as they come, for as long as there is a channel. */
  async #send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    const { storedResponses } = this.#collaborators;
    while (this.#channel !== null) {
      const news = storedResponses.takeNews();
      for (let at = 0; at < news.length; at += MAX_IN_MESSAGE) {
        this.#channel.publish(printMessage(news.slice(at, at + MAX_IN_MESSAGE)));
      }
      await storedResponses.untilNews();
    }
    this.#isSending = false;
  }
}

/** Prints at most 256 responses. */
export function printMessage(responses: readonly StoredResponse[]): string {
  const toHex = (word: number) => (word >>> 0).toString(16).padStart(WORD_CHARS, '0');
  return responses.flatMap((response) => wordsOf(response).map(toHex)).join('');
}

function wordsOf({ digest, seed, model, calledAs }: StoredResponse): readonly number[] {
  return [...digest, seed, ...model, ...calledAs];
}

/** The responses in a message; none if no gateway wrote it. */
export function parseMessage(message: string): readonly StoredResponse[] {
  if (!MESSAGE.test(message)) return [];
  const wordAt = (index: number) =>
    Number.parseInt(message.slice(index * WORD_CHARS, (index + 1) * WORD_CHARS), 16) | 0;
  const responses: StoredResponse[] = [];
  for (let at = 0; at < message.length / WORD_CHARS; at += WORDS) {
    const digest = [wordAt(at), wordAt(at + 1), wordAt(at + 2), wordAt(at + 3)] as const;
    responses.push({
      digest,
      seed: wordAt(at + 4),
      model: [wordAt(at + 5), wordAt(at + 6)],
      calledAs: [wordAt(at + 7), wordAt(at + 8)],
    });
  }
  return responses;
}
