import { open } from 'node:fs/promises';
import { toFileProblem } from '../config/file-problem.ts';
import { type BackendSums, compareSums, parseBackendSums } from '../verify-ledger/backend-sums.ts';
import { readRecordFile } from '../verify-ledger/record-file.ts';
import { toReport } from '../verify-ledger/report.ts';
import { TooManyRecordsError } from '../verify-ledger/seq-pages.ts';
import { TooManyInstancesError, Verification } from '../verify-ledger/verify.ts';
import { type Invocation, UsageError } from './command-line/command.ts';
import { COMMANDS } from './command-line/command-table.ts';
import { parseArguments } from './command-line/options.ts';
import { toOneLine } from './terminal/table.ts';
import { toReportText } from './terminal/verify-text.ts';

/** The exit codes, for CI. */
const EXIT = { proven: 0, notProven: 1, unreadable: 2 } as const;

/** The sums of a backend are a row for each instance: a larger text is something else. */
const MAX_SUMS_BYTES = 64 * 1024 * 1024;

/** A file that cannot be read. `message` is one line. */
class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

/**
 * `gateway verify FILE …`: whether the records in files, or the sums of a backend, are those that the gateway has made.
 * Throws a UsageError.
 */
export async function verify(invocation: Invocation): Promise<number> {
  const { values, positionals } = parseArguments(invocation.args, COMMANDS.verify.options);
  if (positionals.length === 0) throw new UsageError('FILE is missing');
  if ([...positionals, values.sums].filter((path) => path === '-').length > 1) {
    throw new UsageError('- can be given only once');
  }
  try {
    const sums = values.sums === undefined ? null : await readSums(values.sums, invocation);
    const verification = await readFiles(positionals, invocation);
    const report = toReport(verification, {
      isPart: values.partial === true,
      differences: sums === null ? null : compareSums(sums, ledgersOf(verification)),
    });
    const text = values.json ? `${JSON.stringify(report, null, 2)}\n` : toReportText(report);
    invocation.stdout.write(text);
    if (report.instances.length === 0)
      throw new UnreadableError('no record with a number, and no ledger span');
    return report.proven ? EXIT.proven : EXIT.notProven;
  } catch (error) {
    const message = toMessage(error);
    if (message === null) throw error;
    invocation.stderr.write(`gateway: ${message}\n`);
    return EXIT.unreadable;
  }
}

function ledgersOf({ checks }: Verification) {
  return new Map([...checks].map(([instance, check]) => [instance, check.ledgers]));
}

async function readFiles(paths: readonly string[], { stdin }: Invocation): Promise<Verification> {
  const verification = new Verification();
  for (const path of paths) {
    await reading(path, async () => {
      for await (const line of readRecordFile(openSource(path, stdin))) verification.addLine(line);
    });
  }
  return verification;
}

async function readSums(path: string, { stdin }: Invocation): Promise<readonly BackendSums[]> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  await reading(path, async () => {
    for await (const chunk of openSource(path, stdin)) {
      bytes += chunk.length;
      if (bytes > MAX_SUMS_BYTES) throw new UnreadableError(`${toOneLine(path)} is too large to be sums`);
      pieces.push(chunk);
    }
  });
  const sums = parseBackendSums(Buffer.concat(pieces).toString());
  if (typeof sums === 'string') throw new UnreadableError(`cannot use ${toOneLine(path)}: ${sums}`);
  return sums;
}

async function* openSource(path: string, stdin: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (path === '-') {
    yield* stdin;
    return;
  }
  await using file = await open(path);
  yield* file.createReadStream({ autoClose: false });
}

/** Turns what the system or zlib says into an error that names the file. */
async function reading(path: string, read: () => Promise<void>): Promise<void> {
  try {
    await read();
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') throw error;
    const problem = toFileProblem(error, 'there is no such file or directory');
    throw new UnreadableError(`cannot read ${toOneLine(path)}: ${problem}`);
  }
}

/** Null: a defect. */
function toMessage(error: unknown): string | null {
  if (error instanceof UnreadableError) return error.message;
  if (error instanceof TooManyRecordsError)
    return 'more than 67 million records, or numbers that no gateway has given: verify fewer files at a time';
  if (error instanceof TooManyInstancesError)
    return 'more than 100,000 instances: verify fewer files at a time';
  return null;
}
