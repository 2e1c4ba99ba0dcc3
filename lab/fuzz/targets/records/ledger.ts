import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { toReportText } from '../../../../src/cli/tables/verify-text.ts';
import { readRecordFile } from '../../../../src/records/files/record-file.ts';
import { compareSums, parseBackendSums } from '../../../../src/records/verify/backend-sums.ts';
import { toReport } from '../../../../src/records/verify/report.ts';
import { Verification } from '../../../../src/records/verify/verify.ts';
import { type FuzzInput, type FuzzTarget, must, mustEqual, piecesOf, streamOf } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';
import { hasAllSpans, provenFile } from './proven-spans.ts';

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
const LENGTH_BYTES = 4;
/** Most files are plain: to decompress one takes longer than to verify it. */
const FORMS = [
  ...(['plain', 'plain', 'plain', 'plain', 'plain', 'plain'] as const),
  ...(['gzip', 'zstd', 'messages', 'sums'] as const),
];

/** What `gateway verify` reads. */
export const LEDGER: FuzzTarget = {
  name: 'ledger',
  reads: 'the files of `gateway verify`: plain, gzip, zstd, message by message, and the sums of a backend',
  oracle:
    'only the errors of zlib; the lines are those of the whole file; a file is proven if, and only if, it has the records that were made, each once, and the ledger spans, with every covered attribute unchanged',
  variants: FORMS.length,
  ciInputs: 2_000,
  generate(random, variant) {
    const form = FORMS[variant];
    if (form === 'sums') return Buffer.from(jsonText(random, WORDS));
    const file = Buffer.from(provenFile(random));
    if (form === 'gzip') return gzipSync(file, { level: 1 });
    if (form === 'plain') return file;
    const compressed = zstdCompressSync(file);
    if (form === 'zstd') return compressed;
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(compressed.length);
    return Buffer.concat([length, compressed]);
  },
  async check(input) {
    if (FORMS[input.variant] === 'sums') return checkSums(input.bytes.toString());
    const found = await readLines(input);
    if (found === null) return false;
    const lines = linesOf(input.bytes);
    if (lines !== null) mustEqual('the lines', found.map(toText), lines.map(toText));
    const report = toReport(verify(found), { isPart: false, differences: null });
    must(toReportText(report) !== '', 'the report is empty');
    must(
      report.proven === hasAllSpans(found),
      `${report.proven ? 'a changed file is' : 'a whole file is not'} proven`,
    );
    return report.proven;
  },
  async read(input) {
    if (FORMS[input.variant] === 'sums') return parseBackendSums(input.bytes.toString());
    const lines = await readLines(input);
    return lines === null ? null : verify(lines);
  },
};

/** Null for a line that is too long. Null: zlib refuses the file. */
async function readLines(input: FuzzInput): Promise<readonly (Buffer | null)[] | null> {
  const lines: (Buffer | null)[] = [];
  try {
    for await (const line of readRecordFile(streamOf(piecesOf(input)))) lines.push(line);
    return lines;
  } catch (error) {
    // What zlib says of a damaged file.
    if (error instanceof Error && 'code' in error && /^(?:Z_|ZSTD_|ERR_ZSTD)/.test(String(error.code)))
      return null;
    throw error;
  }
}

function verify(lines: readonly (Buffer | null)[]): Verification {
  const verification = new Verification();
  for (const line of lines) verification.addLine(line);
  return verification;
}

/** The lines of a file that is read as a whole. Null: zlib refuses it. */
function linesOf(file: Buffer): readonly (Buffer | null)[] | null {
  const start = (at: number) => file.toString('hex', at, at + 4);
  try {
    if (start(0).startsWith('1f8b')) return split(gunzipSync(file));
    if (start(0) === '28b52ffd') return split(zstdDecompressSync(file));
  } catch {
    return null;
  }
  return start(LENGTH_BYTES) === '28b52ffd' ? messagesOf(file) : split(file);
}

function split(bytes: Buffer): readonly Buffer[] {
  const lines = bytes.toString('latin1').split('\n');
  return lines.filter((line) => line !== '').map((line) => Buffer.from(line, 'latin1'));
}

function messagesOf(file: Buffer): readonly (Buffer | null)[] {
  const messages: (Buffer | null)[] = [];
  for (let at = 0; at < file.length; ) {
    const end = at + LENGTH_BYTES + (at + LENGTH_BYTES > file.length ? 0 : file.readUInt32BE(at));
    if (end > file.length) return [...messages, null];
    messages.push(messageOf(file.subarray(at + LENGTH_BYTES, end)));
    at = end;
  }
  return messages;
}

function messageOf(compressed: Buffer): Buffer | null {
  try {
    return zstdDecompressSync(compressed);
  } catch {
    return null;
  }
}

function toText(line: Buffer | null): string | null {
  return line?.toString('latin1') ?? null;
}

function checkSums(text: string): boolean {
  const sums = parseBackendSums(text);
  if (typeof sums === 'string') return false;
  for (const { difference } of compareSums(sums, new Map()).map((each) => ({ difference: each.what }))) {
    must(difference !== '', 'a difference without a name');
  }
  return true;
}
