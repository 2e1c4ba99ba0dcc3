import { appendFile, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { type Envelope, joinBatch } from './envelope.ts';
import type { Sink } from './sink.ts';
import { TelemetryError } from './telemetry-error.ts';

const FILE_NAME = 'records.jsonl';
/** Records are about tenants: nobody else's business on this machine. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
const LINE_FEED = 0x0a;

/**
 * Appends each batch to `records.jsonl` as one line, an OTLP TracesData in JSON (OpenTelemetry specification,
 * "OTLP File Exporter"), which a Collector's otlpjsonfile receiver reads. Throws a TelemetryError if the file
 * cannot be written. The file is opened for each batch, so that it may be moved away at any time.
 */
export async function openFileSink(directory: string, envelope: Envelope): Promise<Sink> {
  const path = join(directory, FILE_NAME);
  let isMidLine: boolean;
  try {
    await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
    isMidLine = await endsMidLine(path);
  } catch (error) {
    throw new TelemetryError(`cannot write ${FILE_NAME} in the directory of the records`, error);
  }
  return {
    async exportBatch(lines) {
      try {
        const line = joinBatch(envelope, lines);
        await appendFile(path, isMidLine ? ['\n', line, '\n'] : [line, '\n'], { mode: FILE_MODE });
        isMidLine = false;
        return { kind: 'taken', rejectedCount: 0 };
      } catch (error) {
        // Part of the line may be there: the next try must not be glued to it.
        isMidLine = true;
        return { kind: 'unanswered', code: toErrorCode(error) };
      }
    },
    close: () => undefined,
  };
}

/** Creates the file if there is none. A process that was killed may have left half a line. */
async function endsMidLine(path: string): Promise<boolean> {
  await using file = await open(path, 'a+', FILE_MODE);
  const { size } = await file.stat();
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== LINE_FEED;
}

function toErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : 'write_failed';
}
