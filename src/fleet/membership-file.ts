import { join } from 'node:path';
import { isObject, parseJson } from '#base/parsed';
import type { Log } from '#otel/base';
import { isLogicalTimestamp } from '#replicas/drain-state';
import { createStateFile, type OnStateWrite, type Parsed } from '#state-dir';

const FILE_NAME = 'fleet.json';

/** What a gateway keeps about its fleet from one process to the next. */
export interface StoredMembership {
  /** The id of the last process; null if there was none. */
  readonly id: string | null;
  /** A logical timestamp for all processes in the same state_dir; null before the first one that has it. */
  readonly home: string | null;
  /** Whether other gateways may know that process and wait for it. */
  readonly isKnown: boolean;
  /** The names of the other gateways, by id. */
  readonly members: ReadonlyMap<string, string>;
  /** The ids of gateways that are gone for good. */
  readonly removed: readonly string[];
}

/** The file `state_dir/fleet.json`. */
export interface MembershipFile {
  /** Of a damaged file, returns the readable part. Rejects if the file cannot be read. */
  read(): Promise<StoredMembership>;
  /** Resolves when it is on disk. */
  write(membership: StoredMembership): Promise<void>;
}

const NOTHING: StoredMembership = { id: null, home: null, isKnown: false, members: new Map(), removed: [] };

/**
 * Gives access to the file, which the first write creates. If the file is damaged, the gateway learns the lost members
 * from the store before it serves. The others wait for its previous process until an operator forgets that one.
 */
export function createMembershipFile(
  stateDir: string,
  log: Log<'error'>,
  onWrite?: OnStateWrite,
): MembershipFile {
  const file = createStateFile<StoredMembership>(join(stateDir, FILE_NAME), log, onWrite);
  return {
    async read() {
      return (await file.read(parseMembership)).value ?? NOTHING;
    },
    write: (membership) => file.write(printMembership(membership)),
  };
}

/** The content of the file. */
export function printMembership({ members, ...rest }: StoredMembership): string {
  return `${JSON.stringify({ version: 1, ...rest, members: Object.fromEntries(members) })}\n`;
}

/** Parses the file; null if nothing of it is legible. */
export function parseMembership(text: string): Parsed<StoredMembership> | null {
  const stored = parseJson(text);
  if (!isObject(stored) || stored.version !== 1 || !isObject(stored.members)) return null;
  const { id, home = null, isKnown } = stored;
  if (!isLogicalTimestamp(id) || typeof isKnown !== 'boolean' || !Array.isArray(stored.removed)) return null;
  const named = Object.entries(stored.members);
  const members = new Map(named.filter(isMember));
  const removed = stored.removed.filter(isLogicalTimestamp);
  const unreadable = [
    ...named.filter((entry) => !isMember(entry)).map(([member]) => member),
    ...stored.removed.filter((each) => !isLogicalTimestamp(each)).map(toName),
  ];
  const isHome = isLogicalTimestamp(home);
  if (home !== null && !isHome) unreadable.push(toName(home));
  return { value: { id, home: isHome ? home : null, isKnown, members, removed }, unreadable };
}

/** Not by String(), which throws for an object whose `toString` is no function. */
function toName(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function isMember(entry: readonly [string, unknown]): entry is [string, string] {
  return isLogicalTimestamp(entry[0]) && typeof entry[1] === 'string';
}
