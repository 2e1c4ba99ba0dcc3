import type { Log } from '#otel/base';
import {
  PRINTED_CHARS,
  parseResponse,
  printResponse,
  type StoredResponse,
  type StoredResponses,
} from '#replicas/stored-responses';
import type { Channel, ChannelListener } from '../redis/redis-channel.ts';

/** What an exchange works with. */
export interface ResponseExchangeCollaborators {
  readonly storedResponses: StoredResponses;
  readonly openChannel: (listener: ChannelListener) => Channel;
  readonly log: Log<'warn'>;
}

/** Responses in one message. */
const MAX_IN_MESSAGE = 256;
/** The version of the format comes first: gateways of other versions understand nothing of the message. */
const FORMAT = '2';
const MESSAGE = new RegExp(`^${FORMAT}(?:[0-9a-f]{${PRINTED_CHARS}}){1,${MAX_IN_MESSAGE}}$`);

/**
 * Tells the other gateways of a fleet which replica and model made which response for whom, and learns it from them. A message
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
  return FORMAT + responses.map(printResponse).join('');
}

/** The responses in a message; none if no gateway wrote it. */
export function parseMessage(message: string): readonly StoredResponse[] {
  if (!MESSAGE.test(message)) return [];
  const responses: StoredResponse[] = [];
  for (let at = FORMAT.length; at < message.length; at += PRINTED_CHARS)
    responses.push(parseResponse(message, at));
  return responses;
}
