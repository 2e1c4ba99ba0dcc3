import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Log, toErrorCode } from '#otel/base';
import { DIRECTORY_MODE, readRegularFile, writeDurably } from '#otel/files';

/** One file holds what one export carries at the next start. */
const MAX_RECORDS = 512;
const MAX_BYTES = 4 * 1024 * 1024;
/** A larger file is not ours: even a span that has a file to itself is well below. */
const MAX_READ_BYTES = 16 * 1024 * 1024;
/** Gateways that are restarted again and again while the collector is away must not fill the disk. */
const MAX_TOTAL_BYTES = 1024 ** 3;
const EXTENSION = '.spool';
/** The name of a file that is being written. If the process was killed meanwhile, its whole lines are records. */
const UNFINISHED = '.new';
/** The name of a file that replaces another while it is being written. It repeats what is in the other. */
const REPLACEMENT = '.rest';

/** The records of one spool file that are not delivered yet. */
export interface SpooledBatch {
  /** Oldest first. */
  readonly encodedSpans: readonly Uint8Array[];
  /** How many lines of the file are damaged. */
  readonly damagedCount: number;
  /** Removes the first `count` records: deletes the file, or rewrites it without them. Never rejects. */
  settle(count: number): Promise<void>;
}

/** Records on disk, from a shutdown to the next start. */
export interface Spool {
  /** How many files could not be read so far. They stay where they are. */
  readonly unreadableFiles: number;
  /** The oldest file that was not returned yet, or undefined. Deletes files without records on the way. */
  next(): Promise<SpooledBatch | undefined>;
  /** Stores encoded spans. Returns how many, counted from the first, are safely on disk. Never rejects. */
  put(encodedSpans: readonly Uint8Array[]): Promise<number>;
}

/**
 * Opens the spool. Its directory need not exist: it is created when something is stored. Files that cannot be read stay
 * there and are logged, because the records of an earlier run must never stop a gateway from serving.
 */
export async function openSpool(
  directory: string,
  log: Log,
  maxTotalBytes = MAX_TOTAL_BYTES,
): Promise<Spool> {
  const names = await list(directory, log);
  const prefix = String(Date.now()).padStart(14, '0');
  let fileCount = 0;
  let unreadableFiles = 0;

  return {
    get unreadableFiles() {
      return unreadableFiles;
    },

    async next() {
      for (;;) {
        const name = names.shift();
        if (name === undefined) return undefined;
        const batch = await read(join(directory, name), log);
        if (batch === 'unreadable') unreadableFiles += 1;
        else if (batch !== undefined) return batch;
      }
    },

    async put(encodedSpans) {
      let storedCount = 0;
      let mostRecords = MAX_RECORDS;
      try {
        await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
        let totalBytes = await sizeOf(directory);
        while (storedCount < encodedSpans.length) {
          const batch = takeBatch(encodedSpans, storedCount, mostRecords);
          const lines = toSpoolLines(batch);
          if (totalBytes + lines.length > maxTotalBytes) throw new SpoolFullError();
          fileCount += 1;
          const ordinal = String(fileCount).padStart(6, '0');
          const name = `${prefix}-${ordinal}-${randomBytes(4).toString('hex')}${EXTENSION}`;
          try {
            await writeDurably(join(directory, name), lines, UNFINISHED);
          } catch (error) {
            if (batch.length === 1) throw error;
            // A disk that is almost full has room for fewer.
            mostRecords = Math.floor(batch.length / 2);
            continue;
          }
          totalBytes += lines.length;
          storedCount += batch.length;
        }
      } catch (error) {
        const fields = { reason: toErrorCode(error), undelivered: encodedSpans.length - storedCount };
        log.error(fields, 'spool cannot be written: records are lost');
      }
      return storedCount;
    },
  };
}

class SpoolFullError extends Error {
  readonly code = 'spool_full';
}

/** The bytes of all files in a directory. One that was just sent may vanish meanwhile. */
async function sizeOf(directory: string): Promise<number> {
  const names = await readdir(directory);
  const found = await Promise.allSettled(names.map((name) => lstat(join(directory, name))));
  return found.reduce((sum, each) => sum + (each.status === 'fulfilled' ? each.value.size : 0), 0);
}

/** The spans from `start` that fit in one file: at least one, and no more than `most`. */
function takeBatch(encodedSpans: readonly Uint8Array[], start: number, most: number): readonly Uint8Array[] {
  let end = start;
  let bytes = 0;
  for (const { length } of encodedSpans.slice(start, start + most)) {
    bytes += length;
    if (bytes > MAX_BYTES && end > start) break;
    end += 1;
  }
  return encodedSpans.slice(start, end);
}

/** The names of the files to read, oldest first. */
async function list(directory: string, log: Log): Promise<string[]> {
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

/** Undefined if the file has no records to deliver. */
async function read(path: string, log: Log): Promise<SpooledBatch | 'unreadable' | undefined> {
  let file: Buffer;
  try {
    file = await readRegularFile(path, MAX_READ_BYTES);
  } catch (error) {
    log.error(
      { file: basename(path), reason: toErrorCode(error) },
      'spool file cannot be read: its records stay there',
    );
    return 'unreadable';
  }
  const { encodedSpans, damagedCount } = parseSpoolLines(file);
  if (damagedCount > 0) {
    log.error(
      { unreadable: damagedCount, readable: encodedSpans.length },
      'spool file damaged: its broken lines are lost',
    );
  }
  if (encodedSpans.length === 0 && damagedCount === 0) {
    await remove(path, log);
    return undefined;
  }
  let remaining = encodedSpans;
  return {
    encodedSpans,
    damagedCount,
    async settle(count) {
      remaining = remaining.slice(count);
      await (remaining.length === 0 ? remove(path, log) : rewrite(path, remaining, log));
    },
  };
}

async function remove(path: string, log: Log): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    log.error(
      { reason: toErrorCode(error) },
      'spool file cannot be removed: it is sent again at the next start',
    );
  }
}

async function rewrite(path: string, encodedSpans: readonly Uint8Array[], log: Log): Promise<void> {
  try {
    await writeDurably(path, toSpoolLines(encodedSpans), REPLACEMENT);
  } catch (error) {
    log.error({ reason: toErrorCode(error) }, 'spool file cannot be shortened: it may be sent again');
  }
}

const LINE_FEED = 0x0a;
const CHECKSUM_CHARS = 8;
const SEPARATOR = ' ';

/**
 * The lines of a spool file, one for each encoded span: its CRC-32 in 8 hex digits, a space, its bytes in base64. Without a
 * checksum, a damaged line could make a Collector reject the whole batch that it is sent with.
 */
export function toSpoolLines(encodedSpans: readonly Uint8Array[]): Buffer {
  const lines = encodedSpans.map((encodedSpan) => {
    const { buffer, byteOffset, byteLength } = encodedSpan;
    const base64 = Buffer.from(buffer, byteOffset, byteLength).toString('base64');
    return `${toChecksum(encodedSpan)}${SEPARATOR}${base64}\n`;
  });
  return Buffer.from(lines.join(''), 'latin1');
}

/** The encoded spans of the lines that are intact, and how many lines are damaged. */
export function parseSpoolLines(file: Buffer): {
  readonly encodedSpans: readonly Uint8Array[];
  readonly damagedCount: number;
} {
  const encodedSpans: Uint8Array[] = [];
  let damagedCount = 0;
  for (let start = 0; start < file.length; ) {
    const lineFeed = file.indexOf(LINE_FEED, start);
    const end = lineFeed === -1 ? file.length : lineFeed;
    const encodedSpan = readSpoolLine(file.subarray(start, end));
    if (encodedSpan === null) damagedCount += 1;
    else encodedSpans.push(encodedSpan);
    start = end + 1;
  }
  return { encodedSpans, damagedCount };
}

/** The encoded span of a line of a spool file, without its line feed; null if it is damaged, or no such line. */
export function readSpoolLine(line: Buffer): Uint8Array | null {
  const checksum = line.toString('latin1', 0, CHECKSUM_CHARS);
  const encodedSpan = Buffer.from(line.toString('latin1', CHECKSUM_CHARS + SEPARATOR.length), 'base64');
  return encodedSpan.length > 0 && toChecksum(encodedSpan) === checksum ? encodedSpan : null;
}

function toChecksum(encodedSpan: Uint8Array): string {
  return crc32(encodedSpan).toString(16).padStart(CHECKSUM_CHARS, '0');
}
