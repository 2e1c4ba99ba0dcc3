import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ReplicaPool } from './pool.ts';
import type { DrainState, Replica } from './replica.ts';

const FILE_NAME = 'drains.json';

/** Keeps the drain states in `state_dir/drains.json`, so that they survive a restart. */
export interface DrainStore {
  /** Applies what is stored to the replicas of the pool. Rejects on an unreadable or corrupt file. */
  restore(): Promise<void>;
  /** Stores the present states; resolves once they are on disk. Concurrent calls are written in order. */
  save(): Promise<void>;
}

interface StoredDrains {
  readonly version: 1;
  readonly replicas: Readonly<Record<string, DrainState>>;
}

/** Creates the store. States of replicas that are not configured any more are kept, by name. */
export function createDrainStore(stateDir: string, pool: ReplicaPool): DrainStore {
  const path = join(stateDir, FILE_NAME);
  let stored: Readonly<Record<string, DrainState>> = {};
  let lastWrite: Promise<void> = Promise.resolve();

  return {
    async restore() {
      stored = await readStored(path);
      for (const replica of pool.replicas) {
        const state = Object.hasOwn(stored, replica.name) ? stored[replica.name] : undefined;
        if (state !== undefined) replica.drain = state;
      }
    },
    save() {
      const write = lastWrite.then(() => {
        stored = { ...stored, ...statesOf(pool.replicas) };
        return writeAtomically(
          path,
          `${JSON.stringify({ version: 1, replicas: stored } satisfies StoredDrains)}\n`,
        );
      });
      lastWrite = write.catch(() => undefined);
      return write;
    },
  };
}

function statesOf(replicas: readonly Replica[]): Record<string, DrainState> {
  const touched = replicas.filter((replica) => replica.drain.since !== null);
  return Object.fromEntries(touched.map((replica) => [replica.name, replica.drain]));
}

async function readStored(path: string): Promise<Readonly<Record<string, DrainState>>> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {};
    throw error;
  }
  const parsed = parseStored(text);
  // To forget a drain silently would send requests to a replica that somebody is about to stop.
  if (parsed === null) throw new Error(`${path} is not a drain state file: repair or remove it`);
  return parsed.replicas;
}

function parseStored(text: string): StoredDrains | null {
  try {
    const value: unknown = JSON.parse(text);
    return isStoredDrains(value) ? value : null;
  } catch {
    return null;
  }
}

function isStoredDrains(value: unknown): value is StoredDrains {
  if (typeof value !== 'object' || value === null || !('version' in value) || value.version !== 1)
    return false;
  if (!('replicas' in value) || typeof value.replicas !== 'object' || value.replicas === null) return false;
  return Object.values(value.replicas).every(isDrainState);
}

function isDrainState(value: unknown): value is DrainState {
  if (typeof value !== 'object' || value === null || !('drained' in value) || !('since' in value))
    return false;
  return typeof value.drained === 'boolean' && (value.since === null || typeof value.since === 'string');
}

async function writeAtomically(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
