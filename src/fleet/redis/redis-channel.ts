import { createClient } from '@redis/client';
import { CLIENT_OPTIONS, destroy } from './redis-connection.ts';

/** A channel on which the gateways of a fleet tell each other something that may get lost. */
export interface Channel {
  /** Sends a message, or drops it if the server cannot be reached. */
  publish(message: string): void;
  close(): void;
}

/** What a channel reports. */
export interface ChannelListener {
  onMessage(message: string): void;
  /** The server does not permit the channel: `reason` is the code of its answer. Called once. */
  onRefused(reason: string): void;
}

/** How soon a lost connection is opened again. */
const RECONNECT_MS = 1_000;
/** How soon a channel that the server refused is asked for again: the rights may have been given since. */
const SUBSCRIBE_AGAIN_MS = 5_000;
/** Messages that wait for the server's answer. Further ones are dropped. */
const MAX_UNANSWERED = 1_000;

/** What the gateways tell each other on a channel of its own. */
type Subject = 'responses' | 'rollouts' | 'verdicts';

/** The two connections of all channels. */
interface Link {
  readonly publisher: RedisClient;
  readonly subscriber: RedisClient;
  readonly publisherConnected: Promise<unknown>;
  readonly subscriberConnected: Promise<unknown>;
}

/**
 * The channels of a fleet on a Redis or Valkey server: one connection for each direction, as long as a channel is open. They
 * are opened again whenever they are lost, with the user and the password that `url` has then.
 */
export class RedisChannels {
  readonly #url: () => string;
  readonly #prefix: string;
  #link: Link | null = null;
  #openCount = 0;

  constructor({ url, prefix }: { readonly url: () => string; readonly prefix: string }) {
    this.#url = url;
    this.#prefix = prefix;
  }

  /** Opens the channel for a subject. */
  open(subject: Subject, { onMessage, onRefused }: ChannelListener): Channel {
    const channel = `{${this.#prefix}}:${subject}`;
    this.#link ??= this.#connect();
    this.#openCount += 1;
    const { publisher, subscriber, publisherConnected, subscriberConnected } = this.#link;
    let [wasRefused, isClosed] = [false, false];
    const refuse = (error: unknown) => {
      const reason =
        error instanceof Error ? /^(?:NOPERM|NOAUTH|WRONGPASS)\b/.exec(error.message)?.[0] : undefined;
      if (reason === undefined || wasRefused || isClosed) return;
      wasRefused = true;
      onRefused(reason);
    };
    const hear = (message: string) => {
      if (!isClosed) onMessage(message);
    };
    publisherConnected.catch(refuse);
    // The client subscribes again by itself after each loss, but not after a refusal.
    const subscribe = () => {
      if (isClosed) return;
      subscriber.subscribe(channel, hear).catch((error: unknown) => {
        refuse(error);
        setTimeout(subscribe, SUBSCRIBE_AGAIN_MS).unref();
      });
    };
    subscriberConnected.then(subscribe).catch(refuse);
    return {
      publish(message) {
        if (publisher.isReady) publisher.publish(channel, message).catch(refuse);
      },
      close: () => {
        if (isClosed) return;
        isClosed = true;
        if (subscriber.isReady) subscriber.unsubscribe(channel).catch(refuse);
        this.#closeOne();
      },
    };
  }

  #connect(): Link {
    const publisher = createClientOf(this.#url);
    const subscriber = createClientOf(this.#url);
    return {
      publisher,
      subscriber,
      publisherConnected: publisher.connect(),
      subscriberConnected: subscriber.connect(),
    };
  }

  #closeOne(): void {
    this.#openCount -= 1;
    if (this.#openCount > 0 || this.#link === null) return;
    destroy(this.#link.publisher);
    destroy(this.#link.subscriber);
    this.#link = null;
  }
}

type RedisClient = ReturnType<typeof createClientOf>;

function createClientOf(url: () => string) {
  const server = new URL(url());
  server.username = '';
  server.password = '';
  const client = createClient({
    url: server.href,
    credentialsProvider: {
      type: 'async-credentials-provider',
      credentials: async () => {
        const { username, password } = new URL(url());
        return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
      },
    },
    ...CLIENT_OPTIONS,
    commandsQueueMaxLength: MAX_UNANSWERED,
    socket: { reconnectStrategy: () => RECONNECT_MS, connectTimeout: RECONNECT_MS },
  });
  // The fleet's store logs that the server cannot be reached.
  client.on('error', () => undefined);
  return client;
}
