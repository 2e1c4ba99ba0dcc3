import { createClient, MultiErrorReply, RESP_TYPES } from '@redis/client';
import { isLogicalTimestamp } from '../replicas/control/logical-timestamp.ts';
import { type Beat, type Ledger, parseBeat, parseLedger, printBeat, printLedger } from './sheets.ts';
import { PROMISE_MS } from './timing.ts';

/** The sheets as one reading found them. */
export interface Sheets {
  /** The revision of every ledger, by id. */
  readonly revisions: ReadonlyMap<string, number>;
  /** Those whose revision is another one than was known. */
  readonly ledgers: readonly Ledger[];
  readonly beats: readonly Beat[];
  /** What is there and can be nothing that a gateway wrote: keys, and fields behind them, in printable ASCII. */
  readonly foreign: readonly string[];
}

/** What a gateway writes in one go. */
export interface OwnSheets {
  readonly beat: Beat;
  /** Null: it is in the store as it is. */
  readonly ledger: Ledger | null;
  /** Ids whose sheets are taken away: this gateway's ledger says that they are gone. */
  readonly gone: readonly string[];
}

/**
 * The shared state as a fleet uses it. Every answer of the server has a deadline. A call rejects with the reason if one
 * is missed or anything else fails; the next call begins with a new connection.
 */
export interface FleetStore {
  /** `known`: the revisions of the ledgers that were read before. */
  read(known: ReadonlyMap<string, number>): Promise<Sheets>;
  write(sheets: OwnSheets): Promise<void>;
  /** A gateway's last words: its ledger, and no beat any more. */
  writeLast(ledger: Ledger): Promise<void>;
  close(): void;
}

/** The store could not be reached in time. */
class StoreTimeout extends Error {
  constructor() {
    super(`no answer in ${DEADLINE_MS}ms`);
    this.name = 'StoreTimeout';
  }
}

/** Something else is where the gateways' sheets belong: nothing can be read or written until it is gone. */
export class ForeignKeyError extends Error {
  readonly key: string;

  constructor(key: string) {
    super(`${key} is not what a gateway writes: remove it`);
    this.name = 'ForeignKeyError';
    this.key = key;
  }
}

/** For connecting, and for each time that the server is asked: a reading may ask twice. */
const DEADLINE_MS = 1_000;

/** Creates the access to a Redis or Valkey server. Nothing is connected before the first call. */
export function createFleetStore({
  url,
  prefix,
}: {
  readonly url: string;
  readonly prefix: string;
}): FleetStore {
  const keys = toKeys(prefix);
  let connection: Connection | null = null;

  function end(ended: Connection): void {
    if (connection === ended) connection = null;
    ended.client.destroy();
  }

  /** One connection at a time; whatever fails ends it, so that no late answer can be taken for another's. */
  async function call<T>(work: (client: Client) => Promise<T>): Promise<T> {
    connection ??= connect(url, end);
    const used = connection;
    try {
      return await work(await inTime(used.ready));
    } catch (error) {
      end(used);
      throw error;
    }
  }

  return {
    read: (known) => call((client) => readSheets(client, keys, known)),
    write: (sheets) => call((client) => writeSheets(client, keys, sheets)),
    writeLast: (ledger) =>
      call(async (client) => {
        const writing = pinLedger(client.multi(), keys, ledger).del(keys.beat(ledger.id));
        await inTime(ofKind(writing.exec(), [keys.ledgers, keys.revisions]));
      }),
    close() {
      if (connection !== null) end(connection);
    },
  };
}

type Client = ReturnType<typeof createClientOf>;

interface Connection {
  readonly client: Client;
  readonly ready: Promise<Client>;
}

/** `onEnd`: it broke, perhaps while nobody used it. */
function connect(url: string, onEnd: (connection: Connection) => void): Connection {
  const client = createClientOf(url);
  const ready = client.connect().then(() => client);
  ready.catch(() => undefined);
  const connection = { client, ready };
  client.on('error', () => onEnd(connection));
  return connection;
}

/** Neither reconnecting nor waiting for a connection: a call that cannot be made now fails now. */
function createClientOf(url: string) {
  return createClient({
    url,
    RESP: 2, // understood by every version
    disableOfflineQueue: true,
    disableClientInfo: true, // an ACL need not allow CLIENT
    socket: { reconnectStrategy: false, connectTimeout: DEADLINE_MS },
  });
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new StoreTimeout()), DEADLINE_MS);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** All keys of a fleet have one hash tag: a cluster keeps them together. */
function toKeys(prefix: string) {
  const tag = `{${prefix}}`;
  return {
    ledgers: `${tag}:ledgers`,
    revisions: `${tag}:revisions`,
    beat: (id: string) => `${tag}:beat:${id}`,
  };
}

type Keys = ReturnType<typeof toKeys>;

async function readSheets(client: Client, keys: Keys, known: ReadonlyMap<string, number>): Promise<Sheets> {
  // A field may be called `__proto__`.
  const asMap = client.withTypeMapping({ [RESP_TYPES.MAP]: Map });
  const knownIds = [...known.keys()];
  const [all, knownBeats] = await inTime(
    Promise.all([ofKind(asMap.hGetAll(keys.revisions), [keys.revisions]), readBeats(client, keys, knownIds)]),
  );
  const fields = [...all];
  const isOurs = ([id, revision]: readonly [string, string]) =>
    isLogicalTimestamp(id) && REVISION.test(revision);
  const revisions = new Map(fields.filter(isOurs).map(([id, revision]) => [id, Number(revision)]));
  const foreign = fields.filter((field) => !isOurs(field)).map(([id]) => `${keys.revisions} ${id}`);
  const ids = [...revisions.keys()];
  const newIds = ids.filter((id) => !known.has(id));
  const changed = ids.filter((id) => revisions.get(id) !== known.get(id));
  // Where nothing has changed the first answer was all: a long link takes its time for each.
  const [newBeats, ledgerTexts] = await inTime(
    Promise.all([
      readBeats(client, keys, newIds),
      changed.length === 0 ? [] : ofKind(client.hmGet(keys.ledgers, changed), [keys.ledgers]),
    ]),
  );
  const beatTexts = new Map([...knownBeats, ...newBeats]);
  const beats = parseAll(
    ids.map((id) => beatTexts.get(id) ?? null),
    ids,
    parseBeat,
  );
  const ledgers = parseAll(ledgerTexts, changed, parseLedger);
  foreign.push(
    ...beats.unreadable.map(keys.beat),
    ...ledgers.unreadable.map((id) => `${keys.ledgers} ${id}`),
  );
  return { revisions, beats: beats.sheets, ledgers: ledgers.sheets, foreign: toNames(foreign) };
}

async function readBeats(
  client: Client,
  keys: Keys,
  ids: readonly string[],
): Promise<readonly (readonly [id: string, text: string | null])[]> {
  if (ids.length === 0) return [];
  const texts = await client.mGet(ids.map(keys.beat));
  return ids.map((id, index) => [id, texts[index] ?? null]);
}

const REVISION = /^\d{1,15}$/;

/** No sheet that a gateway writes comes near it: a replica with all that is known of its drain takes 0.5 kB. */
const MAX_SHEET_CHARS = 8 * 1024 ** 2;

/** Those that are there and can be read, and whose are there and cannot. */
function parseAll<T extends { readonly id: string }>(
  texts: readonly (string | null)[],
  ids: readonly string[],
  parse: (text: string) => T | null,
): { readonly sheets: readonly T[]; readonly unreadable: readonly string[] } {
  const sheets: T[] = [];
  const unreadable: string[] = [];
  for (const [index, id] of ids.entries()) {
    const text = texts[index] ?? null;
    if (text === null) continue;
    const sheet = text.length > MAX_SHEET_CHARS ? null : parse(text);
    if (sheet?.id === id) sheets.push(sheet);
    else unreadable.push(id);
  }
  return { sheets, unreadable };
}

/** How much of what is not ours is named. */
const MAX_FOREIGN = { names: 100, chars: 120 } as const;

function toNames(foreign: readonly string[]): readonly string[] {
  const toName = (text: string) => text.slice(0, MAX_FOREIGN.chars).replace(/[^ -~]/g, '?');
  return foreign.slice(0, MAX_FOREIGN.names).map(toName);
}

/**
 * Awaits commands on hashes; of several the first two, and so on by twos, are on `hashes`. Rejects with a
 * ForeignKeyError where the key holds another type.
 */
async function ofKind<T>(commands: Promise<T>, hashes: readonly string[]): Promise<T> {
  try {
    return await commands;
  } catch (error) {
    const index = error instanceof MultiErrorReply ? (error.errorIndexes[0] ?? 0) : 0;
    const first = error instanceof MultiErrorReply ? error.replies[index] : error;
    const isOfAnotherType = first instanceof Error && first.message.startsWith('WRONGTYPE');
    throw isOfAnotherType ? new ForeignKeyError(hashes[index % hashes.length] ?? '') : first;
  }
}

async function writeSheets(client: Client, keys: Keys, { beat, ledger, gone }: OwnSheets): Promise<void> {
  const writing = client.multi();
  if (ledger !== null) pinLedger(writing, keys, ledger);
  if (gone.length > 0) writing.hDel(keys.ledgers, [...gone]).hDel(keys.revisions, [...gone]);
  writing.set(keys.beat(beat.id), printBeat(beat), { expiration: { type: 'PX', value: PROMISE_MS } });
  await inTime(ofKind(writing.exec(), [keys.ledgers, keys.revisions]));
}

function pinLedger(writing: ReturnType<Client['multi']>, keys: Keys, ledger: Ledger) {
  return writing
    .hSet(keys.ledgers, ledger.id, printLedger(ledger))
    .hSet(keys.revisions, ledger.id, String(ledger.revision));
}
