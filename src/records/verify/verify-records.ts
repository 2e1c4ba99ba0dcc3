import { type RecordSource, readSources, UnreadableError } from '#records/files';
import { type BackendSums, compareSums, parseBackendSums } from './backend-sums.ts';
import { toReport, type VerifyReport } from './report.ts';
import { TooManyRecordsError } from './seq-pages.ts';
import { TooManyInstancesError, Verification } from './verify.ts';

/** The sums of a backend are a row for each instance: a larger text is something else. */
const MAX_SUMS_BYTES = 64 * 1024 * 1024;

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
  await readSources(files, (line) => verification.addLine(line), explain);
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

function explain(error: unknown): string | null {
  if (error instanceof TooManyRecordsError)
    return 'more than 67 million records, or numbers that no gateway has given: verify fewer files at a time';
  if (error instanceof TooManyInstancesError)
    return 'more than 100,000 instances: verify fewer files at a time';
  return null;
}
