import { type BackendSums, compareSums, parseBackendSums } from './backend-sums.ts';
import { readRecordFile, UnusedInputError } from './record-file.ts';
import { toReport, type VerifyReport } from './report.ts';
import { TooManyRecordsError } from './seq-pages.ts';
import { TooManyInstancesError, Verification } from './verify.ts';

/** The sums of a backend are a row for each instance: a larger text is something else. */
const MAX_SUMS_BYTES = 64 * 1024 * 1024;

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
 * Whether the records in files, or the sums of a backend, are those that the gateway has made. `isPart`: the files are a
 * part of what was recorded. Rejects with an UnreadableError, or with what the chunks of a file reject with.
 */
export async function verifyRecords(
  files: readonly RecordSource[],
  { isPart, sums }: { readonly isPart: boolean; readonly sums: RecordSource | null },
): Promise<VerifyReport> {
  const rows = sums === null ? null : await readSums(sums);
  const verification = await readFiles(files);
  return toReport(verification, {
    isPart,
    differences: rows === null ? null : compareSums(rows, ledgersOf(verification)),
  });
}

function ledgersOf({ checks }: Verification) {
  return new Map([...checks].map(([instance, check]) => [instance, check.ledgers]));
}

async function readFiles(files: readonly RecordSource[]): Promise<Verification> {
  const verification = new Verification();
  for (const { name, chunks } of files) {
    try {
      for await (const line of readRecordFile(chunks)) verification.addLine(line);
    } catch (error) {
      const message = toMessage(name, error);
      throw message === null ? error : new UnreadableError(message, { cause: error });
    }
  }
  return verification;
}

async function readSums({ name, chunks }: RecordSource): Promise<readonly BackendSums[]> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > MAX_SUMS_BYTES) throw new UnreadableError(`${name} is too large to be sums`);
    pieces.push(chunk);
  }
  const sums = parseBackendSums(Buffer.concat(pieces).toString());
  if (typeof sums === 'string') throw new UnreadableError(`cannot use ${name}: ${sums}`);
  return sums;
}

/** Null: a defect, or an error that names the file already. */
function toMessage(name: string, error: unknown): string | null {
  if (error instanceof UnusedInputError) return `cannot read ${name}: it goes on behind its compressed data`;
  if (error instanceof TooManyRecordsError)
    return 'more than 67 million records, or numbers that no gateway has given: verify fewer files at a time';
  if (error instanceof TooManyInstancesError)
    return 'more than 100,000 instances: verify fewer files at a time';
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null;
  // zlib says what is wrong in its code, such as Z_DATA_ERROR.
  return `cannot read ${name}: ${error.code}`;
}
