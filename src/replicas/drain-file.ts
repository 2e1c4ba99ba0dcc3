import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { DrainState } from './drains.ts';
import { isStamp, nextStamp } from './stamp.ts';
import { createStateFile } from './state-file.ts';

const FILE_NAME = 'drains.json';

/** The drain states on disk, in `state_dir/drains.json`, so that they survive a restart. */
export interface DrainFile {
  /** The states by name. Rejects on an unreadable or corrupt file. */
  read(): Promise<ReadonlyMap<string, DrainState>>;
  /** Stores these states; resolves once they, or later ones, are on disk. */
  write(states: ReadonlyMap<string, DrainState>): Promise<void>;
}

/** Creates the access to the file; it is made when something is stored. */
export function createDrainFile(stateDir: string): DrainFile {
  const file = createStateFile(join(stateDir, FILE_NAME));

  return {
    async read() {
      const text = await file.read();
      if (text === null) return new Map();
      const states = parseStates(text);
      // To forget a drain silently would send requests to a replica that somebody is about to stop.
      if (states === null) throw new Error(`${file.path} is not a drain state file: repair or remove it`);
      return states;
    },
    write(states) {
      return file.write(`${JSON.stringify({ version: 1, replicas: Object.fromEntries(states) })}\n`);
    },
  };
}

function parseStates(text: string): ReadonlyMap<string, DrainState> | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || value.version !== 1 || !isObject(value.replicas)) return null;
  const states = new Map<string, DrainState>();
  for (const [name, stored] of Object.entries(value.replicas)) {
    const state = toState(stored);
    if (state === null) return null;
    states.set(name, state);
  }
  return states;
}

/** The reason and the version came later than the format: a file without them is as good. */
function toState(stored: unknown): DrainState | null {
  if (!isObject(stored)) return null;
  const { drained, since, reason = null, version = stampOf(since) } = stored;
  const isState =
    typeof drained === 'boolean' &&
    (since === null || typeof since === 'string') &&
    (reason === null || typeof reason === 'string') &&
    (version === '' || isStamp(version));
  return isState ? ({ drained, since, reason, version } as DrainState) : null;
}

/** A stamp of the time when a state was set; of the beginning of time if that is unknown. */
function stampOf(since: unknown): string {
  const epochMs = typeof since === 'string' ? Date.parse(since) : 0;
  return nextStamp('', Number.isNaN(epochMs) ? 0 : epochMs, randomBytes(6).toString('hex'));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
