import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { isObject, parseJson } from '#base/parsed';
import type { Log } from '#otel/base';
import { type DrainState, isLogicalTimestamp, isRamp, nextLogicalTimestamp } from '#replicas/drain-state';
import { createStateFile, type OnStateWrite, type Parsed } from '#state-dir';
import type { DrainFile } from './replica-drains.ts';

const FILE_NAME = 'drains.json';
/** How long after states could not be stored, as on a full disk, they are stored again. */
const STORE_AGAIN_MS = 2_000;

/**
 * Creates the access to the file, which exists once something is stored. If a drain is lost because the file is
 * damaged, the log says so and the gateway starts: to serve no requests at all would be worse than to send some to a
 * replica that is about to be stopped. States that cannot be stored are stored as soon as the disk allows it.
 */
export function createDrainFile(stateDir: string, log: Log<'error'>, onWrite?: OnStateWrite): DrainFile {
  const path = join(stateDir, FILE_NAME);
  const file = createStateFile<ReadonlyMap<string, DrainState>>(path, log, onWrite);
  /** What was given last. It is on disk, or is being written, unless `isStored` is false. */
  let latest: ReadonlyMap<string, DrainState> = new Map();
  let isStored = true;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function write(states: ReadonlyMap<string, DrainState>): Promise<void> {
    latest = states;
    try {
      await file.write(printDrainStates(states));
    } catch (error) {
      isStored = false;
      if (!isClosed) timer ??= setTimeout(() => void storeAgain(), STORE_AGAIN_MS).unref();
      throw error;
    }
    isStored = true;
  }

  /** The caller of the first attempt was told that it failed. */
  async function storeAgain(): Promise<void> {
    timer = undefined;
    if (!isStored) await write(latest).catch(() => undefined);
  }

  return {
    async read() {
      const { value, isDamaged } = await file.read(parseDrainStates);
      if (value !== null && isDamaged) await write(value);
      return value ?? new Map();
    },
    write,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await storeAgain();
    },
  };
}

/** The content of the file. */
export function printDrainStates(states: ReadonlyMap<string, DrainState>): string {
  return `${JSON.stringify({ version: 1, replicas: Object.fromEntries(states) })}\n`;
}

/** Parses the file; null if nothing of it is legible. */
export function parseDrainStates(text: string): Parsed<ReadonlyMap<string, DrainState>> | null {
  const stored = parseJson(text);
  if (!isObject(stored) || stored.version !== 1 || !isObject(stored.replicas)) return null;
  const value = new Map<string, DrainState>();
  const unreadable: string[] = [];
  for (const [name, each] of Object.entries(stored.replicas)) {
    const state = toState(each);
    if (state === null) unreadable.push(name);
    // A drained replica stays drained, whatever else of its state is damaged.
    const kept = state ?? (isObject(each) && each.drained === true ? DAMAGED_DRAIN : null);
    if (kept !== null) value.set(name, kept);
  }
  return { value, unreadable };
}

const DAMAGED_DRAIN: DrainState = { drained: true, since: null, reason: null, version: timestampOf(null) };

/** Null if it is damaged. Files of early releases have no reason and no version. */
function toState(stored: unknown): DrainState | null {
  if (!isObject(stored)) return null;
  const { drained, since, reason = null, version = timestampOf(since), rampMs, goneSince } = stored;
  const isState =
    typeof drained === 'boolean' &&
    (since === null || typeof since === 'string') &&
    (reason === null || typeof reason === 'string') &&
    (version === '' || isLogicalTimestamp(version)) &&
    (rampMs === undefined || isRamp(rampMs)) &&
    (goneSince === undefined || isTime(goneSince));
  const ramp = rampMs === undefined ? {} : { rampMs };
  const gone = goneSince === undefined ? {} : { goneSince };
  return isState ? ({ drained, since, reason, version, ...ramp, ...gone } as DrainState) : null;
}

/** The logical timestamp for the time when a state was set; for 1970 if that is unknown. */
function timestampOf(since: unknown): string {
  const epochMs = typeof since === 'string' ? Date.parse(since) : 0;
  return nextLogicalTimestamp('', Number.isNaN(epochMs) ? 0 : epochMs, randomBytes(6).toString('hex'));
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value));
}
