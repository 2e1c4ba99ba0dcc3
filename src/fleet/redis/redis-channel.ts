import { createClient } from '@redis/client';
import { CLIENT_OPTIONS } from './redis-connection.ts';

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
/** Messages that wait for the server's answer. Further ones are dropped. */
const MAX_UNANSWERED = 1_000;

/**
 * Opens the channel of a fleet on a Redis or Valkey server, with a connection for each direction. They are opened again
 * whenever they are lost, with the user and the password that `url` has then.
 */
export function openRedisChannel(
  { url, prefix }: { readonly url: () => string; readonly prefix: string },
  { onMessage, onRefused }: ChannelListener,
): Channel {
  const channel = `{${prefix}}:responses`;
  const publisher = createClientOf(url);
  const subscriber = createClientOf(url);
  let wasRefused = false;
  const refuse = (error: unknown) => {
    const reason =
      error instanceof Error ? /^(?:NOPERM|NOAUTH|WRONGPASS)\b/.exec(error.message)?.[0] : undefined;
    if (reason === undefined || wasRefused) return;
    wasRefused = true;
    onRefused(reason);
  };
  publisher.connect().catch(refuse);
  // The client subscribes again by itself after each loss.
  void subscriber
    .connect()
    .then(() => subscriber.subscribe(channel, (message) => onMessage(message)))
    .catch(refuse);
  return {
    publish(message) {
      if (publisher.isReady) publisher.publish(channel, message).catch(refuse);
    },
    close() {
      publisher.destroy();
      subscriber.destroy();
    },
  };
}

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
