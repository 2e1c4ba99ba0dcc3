import { type FileHandle, open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { inArrivalOrder, mergeByEnd, type OrderCounts } from '../replay-trace/arrival-order.ts';
import { PrefixHits } from '../replay-trace/prefix-hits.ts';
import { type ReadCounts, type RecordFilter, readRequests } from '../replay-trace/read-requests.ts';
import { createTraceLines } from '../replay-trace/trace-lines.ts';
import { StartError } from '../start-error.ts';
import { toOneLine } from './admin/client.ts';
import { toCacheText } from './cache-table.ts';
import type { Invocation } from './command-line/command.ts';
import { type ExportOptions, parseExportOptions, USAGE } from './export-trace-options.ts';

/** A request may last as long as so many others take to come and go; each is held in some 100 to 1,200 bytes. */
const WINDOW = 50_000;

const WRITE_CHARS = 64 * 1024;

interface Counts extends ReadCounts, OrderCounts {
  requests: number;
}

/**
 * `gateway export-trace RECORDS.jsonl …`: exported records as a trace for replay tools, and what prefix caching
 * did and could do for them. Throws a UsageError, or a StartError for a file that cannot be read or written.
 */
export async function exportTrace(invocation: Invocation): Promise<number> {
  const options = parseExportOptions(invocation.args);
  if (options === 'help') {
    invocation.stdout.write(USAGE);
    return 0;
  }
  const counts: Counts = { requests: 0, repeated: 0, late: 0, brokenLines: 0, withoutTokens: 0 };
  const hits = new PrefixHits(options.sizes.blockChars / options.sizes.charsPerToken);
  await using sources = await openSources(options.paths, invocation);
  await using output = await openOutput(options, invocation);

  const toLine = createTraceLines(options.sizes);
  const files = sources.streams.map((chunks) => readRequests(chunks, options.filter, counts));
  let text = '';
  for await (const request of inArrivalOrder(mergeByEnd(files), WINDOW, counts)) {
    counts.requests += 1;
    if (options.withSummary) hits.add(request);
    if (output === null) continue;
    text += toLine(request);
    if (text.length < WRITE_CHARS) continue;
    await output.write(text);
    text = '';
  }
  await output?.write(text);

  if (options.withSummary) writeSummary(hits, options, invocation);
  tellWhatIsMissing(counts, options.filter, invocation);
  return counts.requests === 0 ? 1 : 0;
}

function writeSummary(hits: PrefixHits, { asJson, sizes }: ExportOptions, { stdout }: Invocation): void {
  const summary = hits.summarize();
  stdout.write(asJson ? `${JSON.stringify(summary, null, 2)}\n` : toCacheText(summary, sizes));
}

/** One line on standard error for each kind of record that is not in the trace as it came. */
function tellWhatIsMissing(counts: Counts, filter: RecordFilter, { stderr }: Invocation): void {
  const tell = (count: number, what: string) => {
    if (count > 0) stderr.write(`gateway: ${count} ${what}\n`);
  };
  tell(counts.brokenLines, 'broken lines, left out');
  tell(counts.withoutTokens, 'records without both token counts (failures, embeddings), left out');
  tell(counts.repeated, 'records that came twice, taken once');
  tell(counts.late, `requests more than ${WINDOW} records late, moved`);
  if (counts.requests > 0) return;
  const isFiltered = filter.model !== undefined || filter.replica !== undefined;
  stderr.write(`gateway: no request with token counts found${isFiltered ? ' that was asked for' : ''}\n`);
}

/** The bytes of all files: opened at once, so that one that cannot be read is told before anything is written. */
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
      const handle = await open(path).catch((error: unknown) => refuse('read', path, error));
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

/** Where the trace goes; null if only the summary is asked for. */
async function openOutput({ output, withSummary, paths }: ExportOptions, { stdout }: Invocation) {
  if (output === undefined) {
    if (withSummary) return null;
    return { write: async (text: string) => void stdout.write(text), [Symbol.asyncDispose]: async () => {} };
  }
  if (paths.some((path) => resolve(path) === resolve(output))) {
    throw new StartError(`cannot write ${output}: it is one of the files to read`);
  }
  const handle = await open(output, 'w').catch((error: unknown) => refuse('write', output, error));
  return {
    async write(text: string) {
      await handle.appendFile(text).catch((error: unknown) => refuse('write', output, error));
    },
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

function refuse(action: 'read' | 'write', path: string, error: unknown): never {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  throw new StartError(`cannot ${action} ${toOneLine(path)}: ${REASONS.get(code) ?? code}`, error);
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file or folder'],
  ['EACCES', 'permission denied'],
  ['EISDIR', 'it is a directory'],
  ['ENOSPC', 'the disk is full'],
]);
