import { createClient, MultiErrorReply, RESP_TYPES } from '@redis/client';
import { isLogicalTimestamp } from '../replicas/control/logical-timestamp.ts';
import { HEARTBEAT_TTL_MS } from './timing.ts';
import {
  type Heartbeat,
  parseHeartbeat,
  parseSnapshot,
  printHeartbeat,
  printSnapshot,
  type Snapshot,
} from './wire-format.ts';

/** What one read found in the store. */
export interface StoreContents {
  /** The revision of every snapshot, by id. */
  readonly revisions: ReadonlyMap<string, number>;
  /** The snapshots whose revision differs from the known one. */
  readonly snapshots: readonly Snapshot[];
  readonly heartbeats: readonly Heartbeat[];
  /** Data that no gateway wrote: a key, or a key and a field, in printable ASCII. */
  readonly foreign: readonly string[];
}

/** What a gateway writes in one transaction. */
export interface StoreUpdate {
  readonly heartbeat: Heartbeat;
  /** Null if the store has the current one. */
  readonly snapshot: Snapshot | null;
  /** The ids of gateways whose snapshots are deleted. This gateway's snapshot lists them as removed. */
  readonly removedIds: readonly string[];
}

/**
 * The store that the gateways of a fleet share. Every answer of the server has a deadline. A call rejects if the
 * deadline passes or anything else fails. The next call then opens a new connection.
 */
export interface FleetStore {
  /** `known`: the revisions of the snapshots that were already read. */
  read(known: ReadonlyMap<string, number>): Promise<StoreContents>;
  write(update: StoreUpdate): Promise<void>;
  /** Writes the last snapshot of a gateway that stops, and deletes its heartbeat. */
  writeFinal(snapshot: Snapshot): Promise<void>;
  close(): void;
}

/** The server did not answer in time. */
class StoreTimeout extends Error {
  constructor() {
    super(`no answer in ${DEADLINE_MS}ms`);
    this.name = 'StoreTimeout';
  }
}

/** A key of the fleet has the wrong type. The store cannot be used until an operator removes the key. */
export class WrongTypeError extends Error {
  readonly key: string;

  constructor(key: string) {
    super(`${key} has the wrong type: no gateway wrote it, remove it`);
    this.name = 'WrongTypeError';
    this.key = key;
  }
}

/** For connecting, and for each round trip to the server. A read may take two. */
const DEADLINE_MS = 1_000;

/** Creates a store on a Redis or Valkey server. The first call connects, and each connection is to `url` as it is then. */
export function createRedisStore({
  url,
  prefix,
}: {
  readonly url: () => string;
  readonly prefix: string;
}): FleetStore {
  const keys = toKeys(prefix);
  let connection: Connection | null = null;

  function end(ended: Connection): void {
    if (connection === ended) connection = null;
    ended.client.destroy();
  }

  /**
   * Uses one connection. Any failure closes it, so that a late answer is never taken for the answer to another call.
   */
  async function call<T>(work: (client: Client) => Promise<T>): Promise<T> {
    connection ??= connect(url(), end);
    const used = connection;
    try {
      return await work(await withDeadline(used.ready));
    } catch (error) {
      end(used);
      throw error;
    }
  }

  return {
    read: (known) => call((client) => readContents(client, keys, known)),
    write: (update) => call((client) => writeUpdate(client, keys, update)),
    writeFinal: (snapshot) =>
      call(async (client) => {
        const transaction = setSnapshot(client.multi(), keys, snapshot).del(keys.heartbeat(snapshot.id));
        await withDeadline(onHashes(transaction.exec(), [keys.snapshots, keys.revisions]));
      }),
    close() {
      if (connection !== null) end(connection);
    },
  };
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
    client.destroy();
  }
}

function toCode(error: unknown): string {
  if (error instanceof StoreTimeout) return 'timeout';
  if (!(error instanceof Error)) return 'error';
  if ('code' in error) return String(error.code);
  return /^[A-Z]{2,32}(?= )/.exec(error.message)?.[0] ?? 'closed';
}

type Client = ReturnType<typeof createClientOf>;

interface Connection {
  readonly client: Client;
  readonly ready: Promise<Client>;
}

/** `onEnd` is called when the connection fails, even while no call uses it. */
function connect(url: string, onEnd: (connection: Connection) => void): Connection {
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
    RESP: 2, // understood by every version
    disableOfflineQueue: true,
    disableClientInfo: true, // an ACL need not allow CLIENT
    socket: { reconnectStrategy: false, connectTimeout: DEADLINE_MS },
  });
}

async function withDeadline<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new StoreTimeout()), DEADLINE_MS);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * All keys of a fleet have the same hash tag, so a cluster keeps them on one node. The key names are part of the
 * contract with other versions: `ledgers` holds the snapshots, `beat` a heartbeat.
 */
function toKeys(prefix: string) {
  const tag = `{${prefix}}`;
  return {
    snapshots: `${tag}:ledgers`,
    revisions: `${tag}:revisions`,
    heartbeat: (id: string) => `${tag}:beat:${id}`,
  };
}

type Keys = ReturnType<typeof toKeys>;

async function readContents(
  client: Client,
  keys: Keys,
  known: ReadonlyMap<string, number>,
): Promise<StoreContents> {
  // A field may be named `__proto__`.
  const asMap = client.withTypeMapping({ [RESP_TYPES.MAP]: Map });
  const knownIds = [...known.keys()];
  const [all, knownHeartbeats] = await withDeadline(
    Promise.all([
      onHashes(asMap.hGetAll(keys.revisions), [keys.revisions]),
      readHeartbeats(client, keys, knownIds),
    ]),
  );
  const fields = [...all];
  const isFromGateway = ([id, revision]: readonly [string, string]) =>
    isLogicalTimestamp(id) && REVISION.test(revision);
  const revisions = new Map(fields.filter(isFromGateway).map(([id, revision]) => [id, Number(revision)]));
  const foreign = fields.filter((field) => !isFromGateway(field)).map(([id]) => `${keys.revisions} ${id}`);
  const ids = [...revisions.keys()];
  const newIds = ids.filter((id) => !known.has(id));
  const changed = ids.filter((id) => revisions.get(id) !== known.get(id));
  // If nothing has changed there is no second round trip, which takes long on a slow link.
  const [newHeartbeats, snapshotTexts] = await withDeadline(
    Promise.all([
      readHeartbeats(client, keys, newIds),
      changed.length === 0 ? [] : onHashes(client.hmGet(keys.snapshots, changed), [keys.snapshots]),
    ]),
  );
  const heartbeatTexts = new Map([...knownHeartbeats, ...newHeartbeats]);
  const heartbeats = parseAll(
    ids.map((id) => heartbeatTexts.get(id) ?? null),
    ids,
    parseHeartbeat,
  );
  const snapshots = parseAll(snapshotTexts, changed, parseSnapshot);
  foreign.push(
    ...heartbeats.unreadable.map(keys.heartbeat),
    ...snapshots.unreadable.map((id) => `${keys.snapshots} ${id}`),
  );
  return {
    revisions,
    heartbeats: heartbeats.messages,
    snapshots: snapshots.messages,
    foreign: toNames(foreign),
  };
}

async function readHeartbeats(
  client: Client,
  keys: Keys,
  ids: readonly string[],
): Promise<readonly (readonly [id: string, text: string | null])[]> {
  if (ids.length === 0) return [];
  const texts = await client.mGet(ids.map(keys.heartbeat));
  return ids.map((id, index) => [id, texts[index] ?? null]);
}

const REVISION = /^\d{1,15}$/;

/** Far more than a gateway writes: the drain state of a replica takes at most 0.5 kB. */
const MAX_MESSAGE_CHARS = 8 * 1024 ** 2;

/** Parses the messages that exist. Returns those that are readable, and the ids of those that are not. */
function parseAll<T extends { readonly id: string }>(
  texts: readonly (string | null)[],
  ids: readonly string[],
  parse: (text: string) => T | null,
): { readonly messages: readonly T[]; readonly unreadable: readonly string[] } {
  const messages: T[] = [];
  const unreadable: string[] = [];
  for (const [index, id] of ids.entries()) {
    const text = texts[index] ?? null;
    if (text === null) continue;
    const message = text.length > MAX_MESSAGE_CHARS ? null : parse(text);
    if (message?.id === id) messages.push(message);
    else unreadable.push(id);
  }
  return { messages, unreadable };
}

/** How many foreign names are reported, and how much of each. */
const MAX_FOREIGN = { names: 100, chars: 120 } as const;

function toNames(foreign: readonly string[]): readonly string[] {
  const toName = (text: string) => text.slice(0, MAX_FOREIGN.chars).replace(/[^ -~]/g, '?');
  return foreign.slice(0, MAX_FOREIGN.names).map(toName);
}

/**
 * Awaits commands on hashes. Of several commands, each pair in order uses the keys in `hashes`. Rejects with a
 * WrongTypeError if a key has another type.
 */
async function onHashes<T>(commands: Promise<T>, hashes: readonly string[]): Promise<T> {
  try {
    return await commands;
  } catch (error) {
    const index = error instanceof MultiErrorReply ? (error.errorIndexes[0] ?? 0) : 0;
    const first = error instanceof MultiErrorReply ? error.replies[index] : error;
    const isOfAnotherType = first instanceof Error && first.message.startsWith('WRONGTYPE');
    throw isOfAnotherType ? new WrongTypeError(hashes[index % hashes.length] ?? '') : first;
  }
}

async function writeUpdate(
  client: Client,
  keys: Keys,
  { heartbeat, snapshot, removedIds }: StoreUpdate,
): Promise<void> {
  const transaction = client.multi();
  if (snapshot !== null) setSnapshot(transaction, keys, snapshot);
  if (removedIds.length > 0)
    transaction.hDel(keys.snapshots, [...removedIds]).hDel(keys.revisions, [...removedIds]);
  transaction.set(keys.heartbeat(heartbeat.id), printHeartbeat(heartbeat), {
    expiration: { type: 'PX', value: HEARTBEAT_TTL_MS },
  });
  await withDeadline(onHashes(transaction.exec(), [keys.snapshots, keys.revisions]));
}

function setSnapshot(transaction: ReturnType<Client['multi']>, keys: Keys, snapshot: Snapshot) {
  return transaction
    .hSet(keys.snapshots, snapshot.id, printSnapshot(snapshot))
    .hSet(keys.revisions, snapshot.id, String(snapshot.revision));
}
