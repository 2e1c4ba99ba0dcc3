import { parseArgs } from 'node:util';
import type { RecordFilter } from '../replay-trace/read-requests.ts';
import { type BlockSizes, isCoarseEnough } from '../replay-trace/trace-lines.ts';
import { UsageError } from './command-line/command.ts';
import { toUsageError } from './command-line/usage-error.ts';

/** What `gateway export-trace --help` prints. */
export const USAGE = `Usage: gateway export-trace [options] RECORDS.jsonl [...]

Reads exported records (export.to: file, or a Collector's file exporter; - is standard input) and writes a trace
in Mooncake's format for replay tools, requests in the order of their arrival.

  --output FILE         write the trace to FILE, not to standard output
  --summary             print how much of the input was cached, and how much could have been, by replica;
                        the trace is then written only with --output
  --json                the summary as JSON
  --model NAME          requests of this model alone
  --replica NAME        requests of this replica alone
  --block-size N        tokens that an id of the trace stands for (default 512, as in the published traces)
  --block-chars N       characters that a prefix hash stands for: prefix_hash.block_chars (default 512)
  --chars-per-token N   characters a token, on average (default 4; --summary tells the measured)

Records hold hashes of text, not of tokens: which token blocks two requests share is an estimate.
`;

/** The command line, understood. */
export interface ExportOptions {
  readonly paths: readonly string[];
  readonly output: string | undefined;
  readonly withSummary: boolean;
  readonly asJson: boolean;
  readonly filter: RecordFilter;
  readonly sizes: BlockSizes;
}

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

const OPTIONS = {
  output: text,
  summary: flag,
  json: flag,
  model: text,
  replica: text,
  'block-size': text,
  'block-chars': text,
  'chars-per-token': text,
  help: { ...flag, short: 'h' },
} as const;

/** Throws a UsageError. */
export function parseExportOptions(args: readonly string[]): ExportOptions | 'help' {
  const { values, positionals } = parse(args);
  if (values.help) return 'help';
  if (positionals.length === 0) throw new UsageError('RECORDS.jsonl is missing');
  if (positionals.filter((path) => path === '-').length > 1) throw new UsageError('- can be given once');
  if (values.json && !values.summary) throw new UsageError('--json goes with --summary');
  const sizes = {
    blockTokens: toNumber('--block-size', values['block-size'] ?? '512', /^[1-9]\d{0,6}$/),
    blockChars: toNumber('--block-chars', values['block-chars'] ?? '512', /^[1-9]\d{0,6}$/),
    charsPerToken: toNumber('--chars-per-token', values['chars-per-token'] ?? '4', /^\d{1,4}(\.\d{1,4})?$/),
  };
  if (!isCoarseEnough(sizes)) {
    const hashTokens = Math.ceil(sizes.blockChars / sizes.charsPerToken);
    throw new UsageError(`--block-size is at least ${hashTokens}: so many tokens are in a hashed block`);
  }
  return {
    paths: positionals,
    output: values.output,
    withSummary: values.summary === true,
    asJson: values.json === true,
    filter: { model: values.model, replica: values.replica },
    sizes,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw toUsageError(error);
  }
}

function toNumber(option: string, text: string, pattern: RegExp): number {
  const value = pattern.test(text) ? Number(text) : 0;
  if (value === 0) throw new UsageError(`${option} is a positive number`);
  return value;
}
