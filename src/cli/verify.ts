import { toFileProblem } from '#base';
import { COMMANDS, parseArguments } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { verifyRecords } from '#records';
import { type RecordSource, UnreadableError } from '#records/files';
import { loadStatementKey, readStatementKey, type StatementKey, verifyStatement } from '#statement';
import { NotRegularError, openRegularFile } from './regular-file.ts';
import { toStatementReportText } from './tables/statement-text.ts';
import { toReportText } from './tables/verify-text.ts';

/** The exit codes, for CI. */
const EXIT = { proven: 0, notProven: 1, unreadable: 2 } as const;

/**
 * `gateway verify FILE …`: whether the records in files, or the sums of a backend, are those that the gateway has made; with
 * `--statement`, whether they give a statement. Throws a UsageError or an UnusableSettingError.
 */
export async function verify(invocation: Invocation): Promise<number> {
  const { values, positionals } = parseArguments(invocation.args, COMMANDS.verify.options);
  if (positionals.length === 0) throw new UsageError('FILE is missing');
  const { statement, sums } = values;
  if ([...positionals, sums, statement].filter((path) => path === '-').length > 1) {
    throw new UsageError('- can be given only once');
  }
  if (statement !== undefined && (sums !== undefined || values.partial)) {
    throw new UsageError("option '--statement' excludes '--sums' and '--partial'");
  }
  if (statement === undefined && values['public-key'] !== undefined) {
    throw new UsageError("option '--public-key' needs '--statement'");
  }
  try {
    if (statement !== undefined) return await proveStatement(statement, positionals, values, invocation);
    const report = await verifyRecords(
      positionals.map((path) => toSource(path, invocation)),
      {
        isPart: values.partial === true,
        sums: values.sums === undefined ? null : toSource(values.sums, invocation),
      },
    );
    const text = values.json ? `${JSON.stringify(report, null, 2)}\n` : toReportText(report);
    invocation.stdout.write(text);
    if (report.instances.length === 0)
      throw new UnreadableError('no record with a number, and no ledger span');
    return report.proven ? EXIT.proven : EXIT.notProven;
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    invocation.stderr.write(`gateway: ${error.message}\n`);
    return EXIT.unreadable;
  }
}

async function proveStatement(
  path: string,
  files: readonly string[],
  { json, 'public-key': given }: { readonly json?: boolean; readonly 'public-key'?: string },
  invocation: Invocation,
): Promise<number> {
  const key = given === undefined ? null : await readKey(given);
  const sources = files.map((file) => toSource(file, invocation));
  const report = await verifyStatement(toSource(path, invocation), sources, key);
  invocation.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : toStatementReportText(report));
  return report.proven ? EXIT.proven : EXIT.notProven;
}

/** A public key in base64, or the file that has it. */
async function readKey(given: string): Promise<StatementKey> {
  const file = `--public-key ${toOneLine(given)} is no public key in base64 (44 characters), and as a file it`;
  return readStatementKey(given) ?? (await loadStatementKey(given, file));
}

function toSource(path: string, invocation: Invocation): RecordSource {
  return { name: toOneLine(path), chunks: readChunks(path, invocation) };
}

/** Opens the file when it is read, and turns what the system says into an error that names it. */
async function* readChunks(path: string, { stdin }: Invocation): AsyncGenerator<Uint8Array> {
  try {
    if (path === '-') {
      yield* stdin;
      return;
    }
    await using file = await openRegularFile(path);
    yield* file.createReadStream({ autoClose: false });
  } catch (error) {
    const problem = toProblem(error);
    throw problem === null ? error : new UnreadableError(`cannot read ${toOneLine(path)}: ${problem}`);
  }
}

/** Null: a defect. */
function toProblem(error: unknown): string | null {
  if (error instanceof NotRegularError) return error.message;
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null;
  return toFileProblem(error, 'there is no such file or directory');
}
