/*
 * Files of exported records: opened lines of OTLP JSON and of a spool, and the values of the spans in them.
 *
 * It never knows what is done with a record.
 * Begin with `readSources`, and span-values.ts.
 */

import { readRecordFile, UnusedInputError } from './record-file.ts';

export { readLines } from './file-lines.ts';
export { readSpans, SpanValues } from './span-values.ts';

/** A file to read. `name` is what messages call it. */
export interface RecordSource {
  readonly name: string;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Files that cannot be read or verified. `message` is one line. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

/**
 * Gives each line of files of records to `addLine`; null: one that is too long. Rejects with an UnreadableError, or with
 * what the chunks of a file reject with. `explain` says in one line what else `addLine` may throw; null: a defect.
 */
export async function readSources(
  files: readonly RecordSource[],
  addLine: (line: Buffer | null) => void,
  explain: (error: unknown) => string | null = () => null,
): Promise<void> {
  for (const { name, chunks } of files) {
    try {
      for await (const line of readRecordFile(chunks)) addLine(line);
    } catch (error) {
      const message = explain(error) ?? toMessage(name, error);
      throw message === null ? error : new UnreadableError(message, { cause: error });
    }
  }
}

/** Null: a defect, or an error that names the file already. */
function toMessage(name: string, error: unknown): string | null {
  if (error instanceof UnusedInputError) return `cannot read ${name}: it goes on behind its compressed data`;
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null;
  // zlib says what is wrong in its code, such as Z_DATA_ERROR.
  return `cannot read ${name}: ${error.code}`;
}
