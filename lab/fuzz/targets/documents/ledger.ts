import { gzipSync, zstdCompressSync } from 'node:zlib';
import { toReportText } from '../../../../src/commands/terminal/verify-text.ts';
import { compareSums, parseBackendSums } from '../../../../src/verify-ledger/backend-sums.ts';
import { readRecordFile } from '../../../../src/verify-ledger/record-file.ts';
import { toReport } from '../../../../src/verify-ledger/report.ts';
import { Verification } from '../../../../src/verify-ledger/verify.ts';
import { type FuzzInput, type FuzzTarget, must, piecesOf } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';
import { PROVEN_SPANS, provenFile } from './spans.ts';

const WORDS = [
  'instance',
  'count',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'first_seq',
  'last_seq',
  'a',
];
/** What the digests cover: the attributes with these names. */
const COVERED = 'gateway.';

/** What `gateway verify` reads. */
export const LEDGER: FuzzTarget = {
  name: 'ledger',
  reads: 'the files of `gateway verify`: plain, gzip, zstd, message by message, and the sums of a backend',
  oracle:
    'only the errors of zlib; a file is proven if, and only if, it has the records and ledger spans that were made, with every covered attribute unchanged',
  variants: 5,
  ciInputs: 2_000,
  generate(random, variant) {
    if (variant === 4) return Buffer.from(jsonText(random, WORDS));
    const file = Buffer.from(provenFile(random));
    if (variant === 1) return gzipSync(file, { level: 1 });
    if (variant === 2) return zstdCompressSync(file);
    if (variant === 3) {
      const message = zstdCompressSync(file);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(message.length);
      return Buffer.concat([length, message]);
    }
    return file;
  },
  async check(input) {
    if (input.variant === 4) return checkSums(input.bytes.toString());
    const lines: Buffer[] = [];
    const verification = await verify(input, lines);
    if (verification === null) return false;
    const report = toReport(verification, { isPart: false, differences: null });
    must(toReportText(report) !== '', 'the report is empty');
    must(
      report.proven === hasAllSpans(lines),
      `${report.proven ? 'a changed file is' : 'a whole file is not'} proven`,
    );
    return report.proven;
  },
  async read(input) {
    return input.variant === 4 ? parseBackendSums(input.bytes.toString()) : await verify(input, null);
  },
};

/** Null: zlib refuses the file. `lines`: gets those that can be read. */
async function verify(input: FuzzInput, lines: Buffer[] | null): Promise<Verification | null> {
  const verification = new Verification();
  try {
    for await (const line of readRecordFile(stream(piecesOf(input)))) {
      verification.addLine(line);
      if (line !== null) lines?.push(line);
    }
    return verification;
  } catch (error) {
    // What zlib says of a damaged file.
    if (error instanceof Error && 'code' in error && /^(?:Z_|ZSTD_|ERR_ZSTD)/.test(String(error.code)))
      return null;
    throw error;
  }
}

function checkSums(text: string): boolean {
  const sums = parseBackendSums(text);
  if (typeof sums === 'string') return false;
  for (const { difference } of compareSums(sums, new Map()).map((each) => ({ difference: each.what }))) {
    must(difference !== '', 'a difference without a name');
  }
  return true;
}

async function* stream(pieces: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* pieces;
}

const EXPECTED = PROVEN_SPANS.map((json) => coveredOf(JSON.parse(json) as ExportedSpan)).sort();

/** Whether the lines have each span with its covered attributes, and no span that differs from all of them. */
function hasAllSpans(lines: readonly Buffer[]): boolean {
  const found = new Set(lines.flatMap((line) => spansOf(line.toString())).map(coveredOf));
  found.delete('[]');
  return JSON.stringify([...found].sort()) === JSON.stringify(EXPECTED);
}

function spansOf(line: string): readonly ExportedSpan[] {
  try {
    const { resourceSpans } = JSON.parse(line) as TracesData;
    return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
  } catch {
    return [];
  }
}

interface ExportedSpan {
  readonly attributes?: readonly { readonly key: string; readonly value?: unknown }[];
}

interface TracesData {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: ExportedSpan[] }[] }[];
}

function coveredOf(span: ExportedSpan): string {
  const attributes = Array.isArray(span?.attributes) ? span.attributes : [];
  const covered = attributes.filter(({ key }) => typeof key === 'string' && key.startsWith(COVERED));
  // Members that OTLP does not know say nothing.
  return JSON.stringify(covered.map(({ key, value }) => [key, value]));
}
