import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { toErrorCode } from '../system-error.ts';
import type { TelemetryLog } from '../telemetry-log.ts';
import { readRegularFile } from './regular-file.ts';
import { parseSpoolLines, toSpoolLines } from './spool-line.ts';
import { writeDurably } from './write-durably.ts';

const DIRECTORY_MODE = 0o700;
/** A file is what one export carries at the next start. */
const MAX_RECORDS = 512;
const MAX_BYTES = 4 * 1024 * 1024;
/** What is larger was not written by us: a span that has a file to itself is well below. */
const MAX_READ_BYTES = 16 * 1024 * 1024;
/** Gateways that are restarted again and again while the collector is away must not fill the disk. */
const MAX_TOTAL_BYTES = 1024 ** 3;
const EXTENSION = '.spool';
/** A file under this name was being written when the process was killed: its whole lines are records. */
const UNFINISHED = '.new';
/** This one only repeats what is in the file it was to replace. */
const REPLACEMENT = '.rest';

/** The records of one spool file that are still to be delivered. */
export interface SpooledBatch {
  /** Encoded spans, oldest first. */
  readonly spans: readonly Uint8Array[];
  /** How many lines of the file were no record any more. */
  readonly brokenCount: number;
  /** Forgets the first `count` of the records: removes the file, or rewrites it without them. Never rejects. */
  settle(count: number): Promise<void>;
}

/** Records put aside at shutdown, for the next start. */
export interface Spool {
  /** The oldest file that was not asked for yet, or undefined. Files without a record are removed on the way. */
  next(): Promise<SpooledBatch | undefined>;
  /** Stores encoded spans; tells how many, counted from the first, are safely on disk. Never rejects. */
  put(spans: readonly Uint8Array[]): Promise<number>;
}

/**
 * Opens the spool, which need not exist: the directory is made when there is something to put into it. What
 * cannot be read stays where it is, and is said in the log: records never stop a gateway from serving.
 */
export async function openSpool(
  directory: string,
  log: TelemetryLog,
  maxTotalBytes = MAX_TOTAL_BYTES,
): Promise<Spool> {
  const names = await list(directory, log);
  const prefix = String(Date.now()).padStart(14, '0');
  let fileCount = 0;

  return {
    async next() {
      for (;;) {
        const name = names.shift();
        if (name === undefined) return undefined;
        const batch = await read(join(directory, name), log);
        if (batch !== undefined) return batch;
      }
    },

    async put(spans) {
      let storedCount = 0;
      try {
        await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
        let totalBytes = await sizeOf(directory);
        while (storedCount < spans.length) {
          const batch = takeFile(spans, storedCount);
          const lines = toSpoolLines(batch);
          totalBytes += lines.length;
          if (totalBytes > maxTotalBytes) throw new SpoolFullError();
          fileCount += 1;
          const ordinal = String(fileCount).padStart(6, '0');
          const name = `${prefix}-${ordinal}-${randomBytes(4).toString('hex')}${EXTENSION}`;
          await writeDurably(join(directory, name), lines, UNFINISHED);
          storedCount += batch.length;
        }
      } catch (error) {
        const fields = { reason: toErrorCode(error), undelivered: spans.length - storedCount };
        log.error(fields, 'spool cannot be written: records are lost');
      }
      return storedCount;
    },
  };
}

class SpoolFullError extends Error {
  readonly code = 'spool_full';
}

/** The bytes of all files in a directory. */
async function sizeOf(directory: string): Promise<number> {
  const names = await readdir(directory);
  const sizes = await Promise.all(names.map(async (name) => (await lstat(join(directory, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** The spans from `start` on that one file holds: one at least. */
function takeFile(spans: readonly Uint8Array[], start: number): readonly Uint8Array[] {
  let end = start;
  let bytes = 0;
  for (const span of spans.slice(start, start + MAX_RECORDS)) {
    bytes += span.length;
    if (bytes > MAX_BYTES && end > start) break;
    end += 1;
  }
  return spans.slice(start, end);
}

/** The names of the files to read, oldest first. */
async function list(directory: string, log: TelemetryLog): Promise<string[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    const reason = toErrorCode(error);
    if (reason !== 'ENOENT') log.error({ reason }, 'spool cannot be read: its records stay there');
    return [];
  }
  for (const name of names) if (name.endsWith(REPLACEMENT)) await remove(join(directory, name), log);
  const files = names.filter((name) => name.endsWith(EXTENSION) || name.endsWith(EXTENSION + UNFINISHED));
  if (files.length > 0) log.info({ files: files.length }, 'records of an earlier run are sent first');
  return files.sort();
}

/** Undefined if there is nothing in the file to deliver. */
async function read(path: string, log: TelemetryLog): Promise<SpooledBatch | undefined> {
  let file: Buffer;
  try {
    file = await readRegularFile(path, MAX_READ_BYTES);
  } catch (error) {
    log.error(
      { file: basename(path), reason: toErrorCode(error) },
      'spool file cannot be read: its records stay there',
    );
    return undefined;
  }
  const { spans, brokenCount } = parseSpoolLines(file);
  if (brokenCount > 0) {
    log.error(
      { unreadable: brokenCount, readable: spans.length },
      'spool file damaged: its broken lines are lost',
    );
  }
  if (spans.length === 0 && brokenCount === 0) {
    await remove(path, log);
    return undefined;
  }
  let remaining = spans;
  return {
    spans,
    brokenCount,
    async settle(count) {
      remaining = remaining.slice(count);
      await (remaining.length === 0 ? remove(path, log) : rewrite(path, remaining, log));
    },
  };
}

async function remove(path: string, log: TelemetryLog): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    log.error(
      { reason: toErrorCode(error) },
      'spool file cannot be removed: it is sent again at the next start',
    );
  }
}

async function rewrite(path: string, spans: readonly Uint8Array[], log: TelemetryLog): Promise<void> {
  try {
    await writeDurably(path, toSpoolLines(spans), REPLACEMENT);
  } catch (error) {
    log.error({ reason: toErrorCode(error) }, 'spool file cannot be shortened: it may be sent again');
  }
}
