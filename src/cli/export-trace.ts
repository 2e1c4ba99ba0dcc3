import { type FileHandle, open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { StartError, toFileProblem, UnusableSettingError } from '#base';
import { COMMANDS, parseArguments } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { createPaint, type Paint, toOneLine, toTable } from '#cli/terminal';
import {
  type CacheSummary,
  isCoarseEnough,
  type TraceCounts,
  type TraceSettings,
  WINDOW,
  writeTrace,
} from '#records';
import { NotRegularError, openRegularFile } from './regular-file.ts';

/**
 * `gateway export-trace RECORDS.jsonl …`: converts exported records to a trace for replay tools, and summarizes what
 * prefix caching achieved and could achieve. Throws a UsageError, or a StartError for a file that cannot be read or
 * written.
 */
export async function exportTrace(invocation: Invocation): Promise<number> {
  const options = parseExportOptions(invocation.args);
  await using sources = await openSources(options.paths, invocation);
  await using output = await openOutput(options, invocation);
  const { counts, summary } = await writeTrace(sources.streams, options, output?.write ?? null);
  if (summary !== null) writeSummary(summary, options, invocation);
  reportOmissions(counts, options.filter, invocation);
  return counts.requests === 0 ? 1 : 0;
}

/** The parsed command line. */
interface ExportOptions extends TraceSettings {
  readonly paths: readonly string[];
  readonly output: string | undefined;
  readonly asJson: boolean;
}

/** Throws a UsageError. */
function parseExportOptions(args: readonly string[]): ExportOptions {
  const { values, positionals } = parseArguments(args, COMMANDS['export-trace'].options);
  if (positionals.length === 0) throw new UsageError('RECORDS.jsonl is missing');
  if (positionals.filter((path) => path === '-').length > 1) throw new UsageError('- can be given only once');
  if (values.json && !values.summary) throw new UsageError('--json needs --summary');
  const sizes = {
    blockTokens: toNumber('--block-size', values['block-size'] ?? '512', /^[1-9]\d{0,6}$/),
    blockChars: toNumber('--block-chars', values['block-chars'] ?? '512', /^[1-9]\d{0,6}$/),
    charsPerToken: toNumber('--chars-per-token', values['chars-per-token'] ?? '4', /^\d{1,4}(\.\d{1,4})?$/),
  };
  if (!isCoarseEnough(sizes)) {
    const hashTokens = Math.ceil(sizes.blockChars / sizes.charsPerToken);
    throw new UsageError(`--block-size must be at least ${hashTokens}, the number of tokens per prefix hash`);
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

function toNumber(option: string, text: string, pattern: RegExp): number {
  const value = pattern.test(text) ? Number(text) : 0;
  if (value === 0) throw new UsageError(`${option} must be a positive number`);
  return value;
}

/** Prints one line on standard error for each kind of record that is missing from the trace or changed in it. */
function reportOmissions(counts: TraceCounts, filter: TraceSettings['filter'], { stderr }: Invocation): void {
  const report = (count: number, what: string) => {
    if (count > 0) stderr.write(`gateway: ${count} ${what}\n`);
  };
  report(counts.brokenLines, 'broken lines, left out');
  report(counts.withoutTokens, 'records that generated no text or lack token counts, left out');
  report(counts.repeated, 'repeated records, used once');
  report(counts.late, `requests more than ${WINDOW} records late, moved`);
  if (counts.requests > 0) return;
  const isFiltered = filter.model !== undefined || filter.replica !== undefined;
  stderr.write(`gateway: no request with token counts found${isFiltered ? ' for this filter' : ''}\n`);
}

function writeSummary(
  summary: CacheSummary,
  { asJson, sizes }: ExportOptions,
  { env, stdout }: Invocation,
): void {
  if (asJson) stdout.write(`${JSON.stringify(summary, roundTo4, 2)}\n`);
  else stdout.write(toSummaryText(summary, sizes, createPaint(stdout, env)));
}

/** For JSON.stringify: shares and averages have no more digits than records justify. */
function roundTo4(_name: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 10_000) / 10_000 : value;
}

const HEAD = ['REPLICA', 'REQUESTS', 'INPUT TOKENS', 'CACHED', 'POSSIBLE AS ROUTED', 'POSSIBLE SHARED'];

/** Formats the summary as a table for people, with its assumptions. */
function toSummaryText(
  summary: CacheSummary,
  { blockChars, charsPerToken }: TraceSettings['sizes'],
  paint: Paint,
): string {
  const rows = [...summary.replicas, { ...summary.all, replica: 'all' }].map(toRow);
  const measured = summary.chars_per_token?.toFixed(2) ?? 'unknown';
  const hashTokens = Math.round(blockChars / charsPerToken);
  return `${toTable(HEAD, rows, { paint })}
CACHED is what the engines report. POSSIBLE is what caches that never evict would have hit: one cache per replica, with
the requests as they were routed, and one cache that all replicas share. It counts whole blocks of the prefix hashes,
assumed to be ${hashTokens} tokens each. The blocks of engines are smaller: they may hit up to one more such block per request.
Characters per token: ${charsPerToken} assumed (--chars-per-token), ${measured} measured. Requests without prefix hashes, which
count as no hit: ${summary.requests_without_hashes}.
`;
}

function toRow(shares: CacheSummary['replicas'][number]): readonly (string | number)[] {
  const { replica, requests, input_tokens, measured, possible_as_routed, possible_shared } = shares;
  const cells = [measured, possible_as_routed, possible_shared].map(toPercent);
  return [replica, requests, input_tokens, ...cells];
}

function toPercent(share: number | null): string {
  return share === null ? 'unknown' : `${(share * 100).toFixed(1)} %`;
}

/** Opens all files at once, so that an unreadable one is reported before anything is written. */
async function openSources(paths: readonly string[], { stdin }: Invocation) {
  const handles: FileHandle[] = [];
  const close = async () => {
    await Promise.all(handles.map((handle) => handle.close()));
  };
  const streams: AsyncIterable<Uint8Array>[] = [];
  try {
    for (const path of paths) {
      if (path === '-') {
        streams.push(readChunks(stdin, 'standard input'));
        continue;
      }
      const handle = await openRegularFile(path).catch((error: unknown) =>
        refuse('read', path, error, UnusableSettingError),
      );
      handles.push(handle);
      streams.push(readChunks(handle.createReadStream({ autoClose: false }), path));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { streams, [Symbol.asyncDispose]: close };
}

async function* readChunks(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    refuse('read', path, error);
  }
}

/** Opens the destination of the trace; null if only the summary is requested. */
async function openOutput({ output, withSummary, paths }: ExportOptions, { stdout }: Invocation) {
  if (output === undefined) {
    if (withSummary) return null;
    return { write: async (text: string) => void stdout.write(text), [Symbol.asyncDispose]: async () => {} };
  }
  if (paths.some((path) => resolve(path) === resolve(output))) {
    throw new UsageError(`cannot write ${output}: it is one of the files to read`);
  }
  const handle = await open(output, 'w').catch((error: unknown) =>
    refuse('write', output, error, UnusableSettingError),
  );
  return {
    async write(text: string) {
      await handle.appendFile(text).catch((error: unknown) => refuse('write', output, error));
    },
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

/** A file that cannot be opened makes the command line wrong; one that fails later does not. */
function refuse(action: 'read' | 'write', path: string, error: unknown, Kind = StartError): never {
  const problem =
    error instanceof NotRegularError
      ? error.message
      : toFileProblem(error, 'there is no such file or directory');
  throw new Kind(`cannot ${action} ${toOneLine(path)}: ${problem}`, error);
}
