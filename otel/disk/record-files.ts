import { type FileHandle, lstat, mkdir, readdir, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, type Log, toErrorCode } from '#otel/base';
import { DIRECTORY_MODE, FILE_MODE, openRegularFile } from '#otel/files';

/** Where records are written, and how much is kept. */
export interface RecordFileSettings {
  readonly directory: string;
  /** The file is closed before it grows beyond this, unless one batch is larger. */
  readonly maxBytes: number;
  /** The file is closed this long after its first line. */
  readonly maxAgeMs: number;
  /** The bound of all files together. Beyond it, the oldest closed files are deleted. */
  readonly maxTotalBytes: number;
}

const NAME = 'records.jsonl';
/** `records-20261121T091530.123Z-0001.jsonl`: sorts by time. The last number is that of older versions. */
const CLOSED_NAME = /^records-(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d\.\d{3}Z)-\d{4}\.jsonl$/;
const LINE_FEED = 0x0a;
const BLOCK_BYTES = 64 * 1024;

/** A file that grows by whole lines. When it is large or old enough, it is closed and renamed. */
export interface RecordFiles {
  /** Appends lines, all or none. Rejects with the system's error. */
  append(lines: Uint8Array): Promise<void>;
  close(): void;
}

/**
 * Opens `records.jsonl` in the directory, and creates both if they do not exist. A closed file never changes: a
 * Collector's otlpjsonfile receiver would read it again from its start. Rejects with the system's error.
 */
export async function openRecordFiles(
  settings: RecordFileSettings,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): Promise<RecordFiles> {
  const { directory, maxBytes, maxAgeMs, maxTotalBytes } = settings;
  const path = join(directory, NAME);
  const closing = new AbortController();
  /** When the first line was written, by the clock; undefined while there is none. */
  let begunAtMs: number | undefined;
  /** Whether the file may end with half a line, to which the next line must not be appended. */
  let mayEndMidLine = true;
  /** In the name of the last closed file: each is later than the one before, even when the clock was set back. */
  let closedEpochMs = 0;
  let lastStep: Promise<void> = Promise.resolve();

  /** Runs one step at a time: a file may reach its age while a batch is being written. */
  function oneAtATime(step: () => Promise<void>): Promise<void> {
    const done = lastStep.then(step);
    lastStep = done.catch(() => undefined);
    return done;
  }

  async function append(lines: Uint8Array): Promise<void> {
    const sizeBytes = await makeReady();
    if (sizeBytes > 0 && (sizeBytes + lines.length > maxBytes || isOld())) await rotate();
    await using file = await openRegularFile(path, 'append', FILE_MODE);
    const { size } = await file.stat();
    try {
      await file.writeFile(lines);
    } catch (error) {
      mayEndMidLine = true;
      await file.truncate(size).catch(() => undefined);
      throw error;
    }
    if (size === 0 || begunAtMs === undefined) begin(0);
  }

  /** Makes the file end with a whole line, and returns its length. */
  async function makeReady(): Promise<number> {
    await using file = await openRegularFile(path, 'append', FILE_MODE);
    const { size } = await file.stat();
    if (!mayEndMidLine) return size;
    const wholeBytes = await endOfLastLine(file, size);
    if (wholeBytes < size) {
      await file.truncate(wholeBytes);
      log.warn({ bytes: size - wholeBytes }, 'half a line at the end of the file of records removed');
    }
    mayEndMidLine = false;
    return wholeBytes;
  }

  const isOld = (): boolean => begunAtMs !== undefined && clock.nowMs() - begunAtMs >= maxAgeMs;

  /** The first line of the file is `ageMs` old. The file is closed at its age, with or without traffic. */
  function begin(ageMs: number): void {
    const at = clock.nowMs() - ageMs;
    begunAtMs = at;
    void clock.sleep(Math.max(0, maxAgeMs - ageMs), closing.signal).then(() => {
      if (closing.signal.aborted || begunAtMs !== at) return;
      oneAtATime(rotate).catch((error: unknown) => {
        log.warn({ reason: toErrorCode(error) }, 'file of records cannot be closed');
      });
    });
  }

  async function rotate(): Promise<void> {
    if ((await makeReady()) > 0) {
      {
        await using file = await openRegularFile(path, 'append');
        await file.sync();
      }
      closedEpochMs = Math.max(closedEpochMs + 1, Date.now());
      const time = new Date(closedEpochMs).toISOString().replaceAll(/[-:]/g, '');
      await rename(path, join(directory, `records-${time}-0001.jsonl`));
    }
    begunAtMs = undefined;
    await prune();
  }

  /** Deletes the oldest closed files, so that the others and a full open file are within the bound. */
  async function prune(): Promise<void> {
    try {
      const names = (await readdir(directory)).filter((name) => CLOSED_NAME.test(name)).sort();
      const found = await Promise.all(
        names.map(async (name) => ({
          path: join(directory, name),
          facts: await lstat(join(directory, name)),
        })),
      );
      const files = found.filter(({ facts }) => facts.isFile());
      const latest = names.at(-1)?.replace(CLOSED_NAME, '$1-$2-$3:$4:$5') ?? '';
      closedEpochMs = Math.max(closedEpochMs, Date.parse(latest) || 0);
      let excessBytes = files.reduce((sum, { facts }) => sum + facts.size, maxBytes) - maxTotalBytes;
      let deletedBytes = 0;
      for (const { path: oldest, facts } of files) {
        if (excessBytes <= 0) break;
        await unlink(oldest);
        excessBytes -= facts.size;
        deletedBytes += facts.size;
      }
      if (deletedBytes > 0)
        log.info({ bytes: deletedBytes }, 'oldest files of records deleted, to stay within the bound');
    } catch (error) {
      // Another program may remove files at the same time. The next call deletes what is left.
      log.warn({ reason: toErrorCode(error) }, 'old files of records cannot be deleted');
    }
  }

  await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
  if ((await makeReady()) > 0) begin(await ageOf(path));
  await prune();
  return { append: (lines) => oneAtATime(() => append(lines)), close: () => closing.abort() };
}

/** The age of the first line, as far as the file system knows: some do not store the time of creation. */
async function ageOf(path: string): Promise<number> {
  const { birthtimeMs, mtimeMs } = await stat(path);
  const begunEpochMs = birthtimeMs > 0 ? Math.min(birthtimeMs, mtimeMs) : mtimeMs;
  return Math.max(0, Date.now() - begunEpochMs);
}

/** How many bytes of the file are whole lines, counted from its start. */
async function endOfLastLine(file: FileHandle, sizeBytes: number): Promise<number> {
  const block = Buffer.alloc(BLOCK_BYTES);
  for (let end = sizeBytes; end > 0; ) {
    const start = Math.max(0, end - BLOCK_BYTES);
    const { bytesRead } = await file.read(block, 0, end - start, start);
    const lineFeed = block.subarray(0, bytesRead).lastIndexOf(LINE_FEED);
    if (lineFeed !== -1) return start + lineFeed + 1;
    end = start;
  }
  return 0;
}
