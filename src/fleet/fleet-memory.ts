import { join } from 'node:path';
import { isLogicalTimestamp } from '../replicas/control/logical-timestamp.ts';
import { createStateFile, type DamageLog, type Parsed } from '../replicas/control/state-file.ts';

const FILE_NAME = 'fleet.json';

/** What a gateway remembers of its fleet from one process to the next. */
export interface Memory {
  /** The id of the last process; null: there was none. */
  readonly id: string | null;
  /** Whether other gateways may know that process, and wait for it. */
  readonly isKnown: boolean;
  /** The names of the other gateways, by id. */
  readonly members: ReadonlyMap<string, string>;
  /** Ids that are gone for good. */
  readonly removed: readonly string[];
}

/** The memory on disk, in `state_dir/fleet.json`. */
export interface FleetMemory {
  /** What of it can be read, if it is damaged. Rejects on an unreadable file. */
  read(): Promise<Memory>;
  /** Resolves once it is on disk. */
  write(memory: Memory): Promise<void>;
}

const NOTHING: Memory = { id: null, isKnown: false, members: new Map(), removed: [] };

/**
 * Creates the access to the file; it is made when something is stored. Whom a gateway forgets with a damaged file it
 * hears of again before it serves; its own process of before is waited for by the others until somebody forgets it.
 */
export function createFleetMemory(stateDir: string, log: DamageLog): FleetMemory {
  const file = createStateFile<Memory>(join(stateDir, FILE_NAME), log);
  return {
    async read() {
      return (await file.read(parseMemory)).value ?? NOTHING;
    },
    write({ members, ...memory }) {
      const stored = { version: 1, ...memory, members: Object.fromEntries(members) };
      return file.write(`${JSON.stringify(stored)}\n`);
    },
  };
}

function parseMemory(text: string): Parsed<Memory> | null {
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(stored) || stored.version !== 1 || !isObject(stored.members)) return null;
  const { id, isKnown } = stored;
  if (!isLogicalTimestamp(id) || typeof isKnown !== 'boolean' || !Array.isArray(stored.removed)) return null;
  const named = Object.entries(stored.members);
  const members = new Map(named.filter(isMember));
  const removed = stored.removed.filter(isLogicalTimestamp);
  const unreadable = [
    ...named.filter((entry) => !isMember(entry)).map(([member]) => member),
    ...stored.removed.filter((each) => !isLogicalTimestamp(each)).map(String),
  ];
  return { value: { id, isKnown, members, removed }, unreadable };
}

function isMember(entry: readonly [string, unknown]): entry is [string, string] {
  return isLogicalTimestamp(entry[0]) && typeof entry[1] === 'string';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
