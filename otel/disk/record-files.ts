import { type FileHandle, lstat, mkdir, readdir, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import { toErrorCode } from '../system-error.ts';
import type { TelemetryLog } from '../telemetry-log.ts';
import { openRegularFile } from './regular-file.ts';

/** Where records are written and how much of them is kept. */
export interface RecordFileSettings {
  readonly directory: string;
  /** The file is closed before it grows beyond this, unless a single batch is larger. */
  readonly maxBytes: number;
  /** The file is closed this long after its first line. */
  readonly maxAgeMs: number;
  /** All files together; the oldest closed ones are deleted beyond it. */
  readonly maxTotalBytes: number;
}

const NAME = 'records.jsonl';
/** `records-20261121T091530.123Z-0001.jsonl`: in the order of time, and no two alike. */
const CLOSED_NAME = /^records-\d{8}T\d{6}\.\d{3}Z-\d{4}\.jsonl$/;
/** Records are about tenants: nobody else's business on this machine. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
const LINE_FEED = 0x0a;
const BLOCK_BYTES = 64 * 1024;

/** A file that grows by whole lines, and is closed under a name of its own when it is large or old enough. */
export interface RecordFiles {
  /** Appends lines, all or none. Rejects with the system's error. */
  append(lines: Uint8Array): Promise<void>;
  close(): void;
}

/**
 * Opens `records.jsonl` in the directory, making both if need be. A closed file never changes any more, because
 * a Collector's otlpjsonfile receiver reads a file that did from its start. Rejects with the system's error.
 */
export async function openRecordFiles(
  settings: RecordFileSettings,
  { log, clock }: { readonly log: TelemetryLog; readonly clock: Clock },
): Promise<RecordFiles> {
  const { directory, maxBytes, maxAgeMs, maxTotalBytes } = settings;
  const path = join(directory, NAME);
  const closing = new AbortController();
  /** When the first line came, by the clock; undefined while there is none. */
  let begunAtMs: number | undefined;
  /** Whether half a line may be at the end: the next one must not be glued to it. */
  let mayEndMidLine = true;
  /** Tells files apart that are closed within one millisecond. */
  let closedCount = 0;
  let lastStep: Promise<void> = Promise.resolve();

  /** One step at a time: the end of a file's time may come while a batch is being written. */
  function inTurn(step: () => Promise<void>): Promise<void> {
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

  /** Sees to it that the file ends with a whole line; tells how long it is. */
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

  /** The file has had lines for `ageMs`: it is closed when its time has come, traffic or not. */
  function begin(ageMs: number): void {
    const at = clock.nowMs() - ageMs;
    begunAtMs = at;
    void clock.sleep(Math.max(0, maxAgeMs - ageMs), closing.signal).then(() => {
      if (closing.signal.aborted || begunAtMs !== at) return;
      inTurn(rotate).catch((error: unknown) => {
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
      const time = new Date().toISOString().replaceAll(/[-:]/g, '');
      closedCount = (closedCount + 1) % 10_000;
      await rename(path, join(directory, `records-${time}-${String(closedCount).padStart(4, '0')}.jsonl`));
    }
    begunAtMs = undefined;
    await prune();
  }

  /** Deletes the oldest closed files, so that the rest and a full open one are within the bound. */
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
      // Whoever takes files away while we look at them is welcome to; the next time is soon enough.
      log.warn({ reason: toErrorCode(error) }, 'old files of records cannot be deleted');
    }
  }

  await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
  if ((await makeReady()) > 0) begin(await ageOf(path));
  await prune();
  return { append: (lines) => inTurn(() => append(lines)), close: () => closing.abort() };
}

/** Since when the file has lines, as far as the file system knows: some know no time of birth. */
async function ageOf(path: string): Promise<number> {
  const { birthtimeMs, mtimeMs } = await stat(path);
  const begunEpochMs = birthtimeMs > 0 ? Math.min(birthtimeMs, mtimeMs) : mtimeMs;
  return Math.max(0, Date.now() - begunEpochMs);
}

/** How many bytes of the file are whole lines. */
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
