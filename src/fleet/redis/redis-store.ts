import { DisconnectsClientError, ErrorReply, MultiErrorReply, RESP_TYPES } from '@redis/client';
import { isLogicalTimestamp } from '#replicas/drain-state';
import {
  type FleetStore,
  type StoreContents,
  StoreError,
  type StoreUpdate,
  WrongTypeError,
} from '../fleet-store.ts';
import { HEARTBEAT_TTL_MS } from '../timing.ts';
import {
  parseHeartbeat,
  parseSnapshot,
  printHeartbeat,
  printSnapshot,
  type Snapshot,
} from '../wire-format.ts';
import { type Client, type Connection, connect, destroy, withDeadline } from './redis-connection.ts';

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
    destroy(ended.client);
  }

  /** Uses one connection. Any failure closes it, so that a late answer is never taken for the answer to another call. */
  async function call<T>(work: (client: Client) => Promise<T>): Promise<T> {
    connection ??= connect(url(), end);
    const used = connection;
    try {
      return await work(await withDeadline(used.ready));
    } catch (error) {
      end(used);
      throw error instanceof StoreError ? error : new StoreError(explain(error), { cause: error });
    }
  }

  return {
    get address() {
      return toRedisAddress(url());
    },
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

/** The address of a server, without user and password. */
export function toRedisAddress(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** Says why a call failed. A server that answers is told from one that does not. */
function explain(error: unknown): string {
  const { message = '', code = message } = error as NodeJS.ErrnoException;
  if (error instanceof ErrorReply) return `Redis answers with an error (${message})`;
  return `Redis does not answer (${error instanceof DisconnectsClientError ? 'the connection was lost' : code})`;
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
