import { createClient } from '@redis/client';
import { startDeadline } from '#otel/base';

/** For connecting, and for each round trip to the server. A read may take two. */
const DEADLINE_MS = 1_000;

/** What all clients have in common. */
export const CLIENT_OPTIONS = {
  RESP: 2, // understood by every version
  disableOfflineQueue: true,
  disableClientInfo: true, // an ACL need not allow CLIENT
} as const;

/** The server did not answer in time. */
class StoreTimeout extends Error {
  constructor() {
    super(`timeout after ${DEADLINE_MS}ms`);
    this.name = 'StoreTimeout';
  }
}

/** A client of the server. */
export type Client = ReturnType<typeof createClientOf>;

/** A connection that is being opened or open. */
export interface Connection {
  readonly client: Client;
  readonly ready: Promise<Client>;
}

/** Connects to a server. `onEnd` is called when the connection fails, even while no call uses it. */
export function connect(url: string, onEnd: (connection: Connection) => void): Connection {
  const client = createClientOf(url);
  const ready = client.connect().then(() => client);
  ready.catch(() => undefined);
  const connection = { client, ready };
  client.on('error', () => onEnd(connection));
  return connection;
}

/** The client neither reconnects nor queues commands: without a connection a call fails at once. */
function createClientOf(url: string) {
  return createClient({
    url,
    ...CLIENT_OPTIONS,
    socket: { reconnectStrategy: false, connectTimeout: DEADLINE_MS },
  });
}

/** Closes the connection of a client at once, also one that opens only now, which the client itself would keep. */
export function destroy(client: {
  destroy(): void;
  once(event: 'connect', listen: () => void): unknown;
}): void {
  client.destroy();
  client.once('connect', () => client.destroy());
}

/** Rejects if the server does not answer within a deadline. */
export async function withDeadline<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const endDeadline = startDeadline(DEADLINE_MS, () => reject(new StoreTimeout()));
  try {
    return await Promise.race([work, promise]);
  } finally {
    endDeadline();
  }
}

/**
 * Connects to a server and sends PING. Returns null if it answers, even that this user may not send PING; otherwise the
 * code of the error, the first word of the server's answer, or `timeout`. Never rejects.
 */
export async function pingRedis(url: string): Promise<string | null> {
  const { client, ready } = connect(url, () => undefined);
  try {
    await withDeadline(ready.then(() => client.ping()));
    return null;
  } catch (error) {
    const code = toCode(error);
    return code === 'NOPERM' ? null : code;
  } finally {
    destroy(client);
  }
}

function toCode(error: unknown): string {
  if (error instanceof StoreTimeout) return 'timeout';
  if (!(error instanceof Error)) return 'error';
  if ('code' in error) return String(error.code);
  return /^[A-Z]{2,32}(?= )/.exec(error.message)?.[0] ?? 'closed';
}
