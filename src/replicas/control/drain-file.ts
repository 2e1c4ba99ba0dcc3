import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { DrainState } from './drains.ts';
import { isLogicalTimestamp, nextLogicalTimestamp } from './logical-timestamp.ts';
import { createStateFile, type DamageLog, type Parsed } from './state-file.ts';

const FILE_NAME = 'drains.json';

/** The drain states on disk, in `state_dir/drains.json`, so that they survive a restart. */
export interface DrainFile {
  /** The states by name: those that can be read, if it is damaged. Rejects on an unreadable file. */
  read(): Promise<ReadonlyMap<string, DrainState>>;
  /** Stores these states; resolves once they, or later ones, are on disk. */
  write(states: ReadonlyMap<string, DrainState>): Promise<void>;
}

/**
 * Creates the access to the file; it is made when something is stored. A drain that is lost with a damaged file is
 * told in the log: no requests at all would be worse than requests to a replica that somebody is about to stop.
 */
export function createDrainFile(stateDir: string, log: DamageLog): DrainFile {
  const file = createStateFile<ReadonlyMap<string, DrainState>>(join(stateDir, FILE_NAME), log);
  const write = (states: ReadonlyMap<string, DrainState>) =>
    file.write(`${JSON.stringify({ version: 1, replicas: Object.fromEntries(states) })}\n`);

  return {
    async read() {
      const { value, isDamaged } = await file.read(parseStates);
      if (value !== null && isDamaged) await write(value);
      return value ?? new Map();
    },
    write,
  };
}

function parseStates(text: string): Parsed<ReadonlyMap<string, DrainState>> | null {
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(stored) || stored.version !== 1 || !isObject(stored.replicas)) return null;
  const value = new Map<string, DrainState>();
  const unreadable: string[] = [];
  for (const [name, each] of Object.entries(stored.replicas)) {
    const state = toState(each);
    if (state === null) unreadable.push(name);
    // What was drained stays so, whatever else of it is damaged.
    const kept = state ?? (isObject(each) && each.drained === true ? DRAINED_ONCE : null);
    if (kept !== null) value.set(name, kept);
  }
  return { value, unreadable };
}

const DRAINED_ONCE: DrainState = { drained: true, since: null, reason: null, version: stampOf(null) };

/** The reason and the version came later than the format: a file without them is as good. */
function toState(stored: unknown): DrainState | null {
  if (!isObject(stored)) return null;
  const { drained, since, reason = null, version = stampOf(since) } = stored;
  const isState =
    typeof drained === 'boolean' &&
    (since === null || typeof since === 'string') &&
    (reason === null || typeof reason === 'string') &&
    (version === '' || isLogicalTimestamp(version));
  return isState ? ({ drained, since, reason, version } as DrainState) : null;
}

/** A stamp of the time when a state was set; of the beginning of time if that is unknown. */
function stampOf(since: unknown): string {
  const epochMs = typeof since === 'string' ? Date.parse(since) : 0;
  return nextLogicalTimestamp('', Number.isNaN(epochMs) ? 0 : epochMs, randomBytes(6).toString('hex'));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
