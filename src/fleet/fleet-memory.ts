import { join } from 'node:path';
import { isStamp } from '../replicas/stamp.ts';
import { createStateFile } from '../replicas/state-file.ts';

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
  /** Rejects on an unreadable or corrupt file. */
  read(): Promise<Memory>;
  /** Resolves once it is on disk. */
  write(memory: Memory): Promise<void>;
}

const NOTHING: Memory = { id: null, isKnown: false, members: new Map(), removed: [] };

/** Creates the access to the file; it is made when something is stored. */
export function createFleetMemory(stateDir: string): FleetMemory {
  const file = createStateFile(join(stateDir, FILE_NAME));
  return {
    async read() {
      const text = await file.read();
      if (text === null) return NOTHING;
      const memory = parseMemory(text);
      // To forget a gateway silently would be to tell a replica safe to stop that this gateway still sends to.
      if (memory === null) throw new Error(`${file.path} is not a file of a fleet: repair or remove it`);
      return memory;
    },
    write({ members, ...memory }) {
      const stored = { version: 1, ...memory, members: Object.fromEntries(members) };
      return file.write(`${JSON.stringify(stored)}\n`);
    },
  };
}

function parseMemory(text: string): Memory | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || value.version !== 1 || !isObject(value.members)) return null;
  const { id, isKnown, removed } = value;
  const members = Object.entries(value.members);
  if (!isStamp(id) || typeof isKnown !== 'boolean' || !Array.isArray(removed)) return null;
  if (!removed.every(isStamp) || !members.every(isMember)) return null;
  return { id, isKnown, removed, members: new Map(members) };
}

function isMember(entry: readonly [string, unknown]): entry is [string, string] {
  return isStamp(entry[0]) && typeof entry[1] === 'string';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
