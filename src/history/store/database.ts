import { randomInt } from 'node:crypto';
import { closeSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { SetAside } from '../messages.ts';
import { MIGRATIONS, SCHEMA, SCHEMA_VERSION } from './schema.ts';

/** The records, and the events, of each file have numbers of a range of its own, by chance: a page of one cannot go on in another one. */
export const FILE_NUMBERS = 1e11;
/** A number has 15 digits at most. */
const FILE_RANGES = 10_000;
/** `SPAN`: whose file it is. */
const APPLICATION_ID = 0x5350414e;
const PAGE_BYTES = 8192;
/** What the log of writes takes beside the file. */
const WAL_BYTES = 8 * 1024 ** 2;

/** Primary result codes (sqlite.org/rescode.html). */
const CODES: Readonly<Record<number, string>> = {
  5: 'locked',
  6: 'locked',
  8: 'read_only',
  10: 'io_error',
  11: 'damaged',
  13: 'full',
  14: 'cannot_open',
  26: 'damaged',
};

/** Why the database did not do what it should: a word for people, or the code of the system. */
export function toReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if ('errcode' in error) return CODES[Number(error.errcode) & 0xff] ?? `sqlite_${Number(error.errcode)}`;
  return 'code' in error ? String(error.code) : error.name;
}

/** An open database. */
export interface OpenDatabase {
  readonly db: DatabaseSync;
  /** Whether the gateway before ended without closing it. */
  readonly wasOpen: boolean;
  readonly setAside: SetAside | null;
}

/**
 * Opens the database, alone: no other process can. One of an older version is migrated; one that is damaged, or of a later
 * version, is renamed, and a new one begun. Throws the error of SQLite or of the system if neither works. `isDamaged`: its use has shown that it is.
 */
export function openDatabase(path: string, nowMs: number, isDamaged = false): OpenDatabase {
  const opened = isDamaged ? 'damaged' : open(path, nowMs);
  if (typeof opened !== 'string') return { ...opened, setAside: null };
  const aside = setAside(path, opened, nowMs);
  return { ...begin(path, nowMs), setAside: aside };
}

function begin(path: string, nowMs: number): Omit<OpenDatabase, 'setAside'> {
  const opened = open(path, nowMs);
  if (typeof opened === 'string') throw new Error(`a new database is ${opened}`);
  return opened;
}

/** A text says why the file is of no use. */
function open(path: string, nowMs: number): Omit<OpenDatabase, 'setAside'> | string {
  createFile(path);
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = ${PAGE_BYTES};
      PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
      PRAGMA journal_size_limit = ${WAL_BYTES}; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY`);
    const [version, application] = [pragma(db, 'user_version'), pragma(db, 'application_id')];
    const isNew = version === 0 && application === 0 && pragma(db, 'schema_version') === 0;
    if (isNew) createTables(db, nowMs);
    else if (application !== APPLICATION_ID) return closed(db, 'not_a_history');
    else if (!migrate(db, version, nowMs)) return closed(db, `version_${version}`);
    const wasOpen = db.prepare('SELECT is_open FROM meta').get()?.is_open === 1;
    if (wasOpen && db.prepare('PRAGMA quick_check(1)').get()?.quick_check !== 'ok')
      return closed(db, 'damaged');
    db.exec('UPDATE meta SET is_open = 1');
    return { db, wasOpen };
  } catch (error) {
    db.close();
    if (toReason(error) === 'damaged') return 'damaged';
    throw error;
  }
}

/**
 * SQLite would let others read the file. One that is there is not opened here: a process that closes a file gives up its
 * locks on it, those of another thread, too.
 */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (toReason(error) !== 'EEXIST') throw error;
  }
}

function closed(db: DatabaseSync, why: string): string {
  db.close();
  return why;
}

function createTables(db: DatabaseSync, nowMs: number): void {
  db.exec('BEGIN IMMEDIATE');
  db.exec(SCHEMA);
  const first = randomInt(FILE_RANGES) * FILE_NUMBERS + 1;
  const meta = db.prepare('INSERT INTO meta VALUES (:first, 0, :now, :now, :now, :now, :now, :now)');
  meta.run({ first, now: nowMs });
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
}

/** Makes it one of this version, step by step, in one transaction. False: nobody knows how. */
function migrate(db: DatabaseSync, from: number, nowMs: number): boolean {
  if (from === SCHEMA_VERSION) return true;
  if (from > SCHEMA_VERSION || MIGRATIONS[from] === undefined) return false;
  db.exec('BEGIN IMMEDIATE');
  for (let version = from; version < SCHEMA_VERSION; version++) db.exec(MIGRATIONS[version] ?? '');
  // What was not exported before is not known.
  db.prepare('UPDATE meta SET losses_ms = ?').run(nowMs);
  db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
  return true;
}

/** The value of a PRAGMA. */
function pragma(db: DatabaseSync, name: string): number {
  return Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
}

/** Which file has a name now; null: none. To look does not open it: that would cost its locks. */
export function identifyFile(path: string): string | null {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? null : `${stats.dev} ${stats.ino}`;
}

/** The bytes that are in use in the file. */
export function usedBytes(db: DatabaseSync): number {
  return (pragma(db, 'page_count') - pragma(db, 'freelist_count')) * PAGE_BYTES;
}

/** The database may take so much of `maxSizeBytes`: the log of writes needs the rest. */
export function toBudget(maxSizeBytes: number): number {
  return maxSizeBytes - WAL_BYTES;
}

/** Bounds the file itself, too. */
export function limitFile(db: DatabaseSync, maxSizeBytes: number): void {
  db.exec(`PRAGMA max_page_count = ${Math.floor(toBudget(maxSizeBytes) / PAGE_BYTES)}`);
}

/** Renames a file that is of no use, and removes the one that was renamed before: the disk is bounded. */
function setAside(path: string, reason: string, nowMs: number): SetAside {
  const marked = `${basename(path)}.aside-`;
  const folder = dirname(path);
  for (const name of readdirSync(folder))
    if (name.startsWith(marked)) rmSync(join(folder, name), { force: true });
  const name = `${marked}${new Date(nowMs).toISOString().replace(/[-:]/g, '')}`;
  renameSync(path, join(folder, name));
  for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true });
  return { name, reason, atMs: nowMs };
}
