import { DIMENSIONS, type Dimension, SUMS } from '../usage-sums.ts';

/** A database of an older version is migrated, one of a later version set aside. */
export const SCHEMA_VERSION = 4;

const LOSSES = `
CREATE TABLE losses (
  instance TEXT NOT NULL, why TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
  is_known INTEGER NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL, PRIMARY KEY (instance, why, first_seq)
) WITHOUT ROWID;
`;

const WAITING = `
CREATE TABLE usage_waiting (
  deltas BLOB NOT NULL, crc INTEGER NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL, requests INTEGER NOT NULL
);
`;

/** What makes a database of each older version one of the next. */
export const MIGRATIONS: Readonly<Record<number, string>> = {
  1: `${LOSSES} ALTER TABLE meta ADD COLUMN losses_ms INTEGER NOT NULL DEFAULT 0;`,
  2: 'ALTER TABLE usage_minutes ADD COLUMN crc INTEGER; ALTER TABLE usage_hours ADD COLUMN crc INTEGER;',
  // The keys of a block were one list: what has more than it needs is found, too.
  3: `${WAITING} ALTER TABLE blocks ADD COLUMN names BLOB NOT NULL DEFAULT x'';
UPDATE blocks SET names = (SELECT keys FROM block_keys WHERE block_keys.first = blocks.first);
ALTER TABLE block_keys RENAME TO record_ids; ALTER TABLE record_ids RENAME COLUMN keys TO ids;`,
};

/** The tables of sums: how long their rows sum, and how long they are kept. */
export const USAGE_TABLES = {
  usage_minutes: { stepMs: 60_000, keptMs: 7 * 86_400_000 },
  usage_hours: { stepMs: 3_600_000, keptMs: 400 * 86_400_000 },
} as const;

export type UsageTable = keyof typeof USAGE_TABLES;

/** All columns of a row of sums but its checksum, in their order. */
export const USAGE_VALUES = [
  'at',
  'is_other',
  ...DIMENSIONS,
  ...SUMS,
  'failures',
  'costs',
  'durations',
  'first_tokens',
] as const;

/** What identifies a row of sums beside its time. `is_other`: one of NAMED. */
export const KEY_COLUMNS = ['is_other', ...DIMENSIONS] as const;

/** Which names a row of sums has: those of all DIMENSIONS, none, or those of `WHO` only. The names that it has not are empty. */
export const NAMED = { all: 0, none: 1, who: 2 } as const;

export type Named = keyof typeof NAMED;

/** Who is answered for with what: the first of DIMENSIONS. Their sums stay apart when a fleet has many replicas. */
export const WHO = DIMENSIONS.slice(0, 3);

/** Whether a row has a name of this dimension. */
export function hasName(isOther: number, dimension: Dimension): boolean {
  return isOther === NAMED.all || (isOther === NAMED.who && WHO.includes(dimension));
}

/** The condition that rows have a value of a dimension, or may have it among what they sum. */
export function toCondition(dimension: Dimension): string {
  const nameless = Object.values(NAMED).filter((isOther) => !hasName(isOther, dimension));
  return `(${dimension} = ? OR is_other IN (${nameless.join(', ')}))`;
}

const USAGE_COLUMNS = [
  'at INTEGER NOT NULL',
  'is_other INTEGER NOT NULL',
  ...DIMENSIONS.map((name) => `${name} TEXT NOT NULL`),
  ...SUMS.map((name) => `${name} NUMERIC NOT NULL`),
  'failures TEXT NOT NULL',
  'costs TEXT NOT NULL',
  'durations BLOB NOT NULL',
  'first_tokens BLOB NOT NULL',
  'crc INTEGER',
  `PRIMARY KEY (at, ${KEY_COLUMNS.join(', ')})`,
].join(', ');

/**
 * All times are epoch milliseconds. crc is that of the other values of its row (usage-row.ts); null: of an older version. Records are numbered in the order in which they came; a block is known by the number
 * of its first record.
 * - meta: one row; is_open while a gateway writes; until when records are in; from when on each kind is kept
 * - blocks, block_data: records (block-store.ts); names, ids: what they are found by (block-keys.ts)
 * - record_ids: those of the records from `first` up to the next row
 * - usage_waiting: what is to be added to the sums (usage-store.ts): from_ms and to_ms are of its minutes
 * - losses: which numbers were not exported, and why; is_known if the record is among those of the history, or was
 * - instances: which numbers (`gateway.seq`) of each instance are in
 */
export const SCHEMA = `
CREATE TABLE meta (
  next_number INTEGER NOT NULL, is_open INTEGER NOT NULL, written_ms INTEGER NOT NULL,
  records_ms INTEGER NOT NULL, minutes_ms INTEGER NOT NULL, hours_ms INTEGER NOT NULL, timeline_ms INTEGER NOT NULL,
  losses_ms INTEGER NOT NULL
);
CREATE TABLE blocks (
  first INTEGER PRIMARY KEY, count INTEGER NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL,
  is_compressed INTEGER NOT NULL, names BLOB NOT NULL
);
CREATE TABLE record_ids (first INTEGER PRIMARY KEY, ids BLOB NOT NULL);
CREATE TABLE block_data (first INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE usage_minutes (${USAGE_COLUMNS}) WITHOUT ROWID;
CREATE TABLE usage_hours (${USAGE_COLUMNS}) WITHOUT ROWID;
CREATE TABLE instances (
  instance TEXT PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, count INTEGER NOT NULL,
  written_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE gaps (from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL, records INTEGER, reason TEXT NOT NULL);
CREATE TABLE timeline (
  number INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER,
  details TEXT NOT NULL
);
${LOSSES} ${WAITING}
CREATE INDEX timeline_open ON timeline (kind, subject) WHERE to_ms IS NULL;
`;
