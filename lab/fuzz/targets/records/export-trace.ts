import { OPERATIONS, RECORD_FIELDS } from '#otel/record/registry';
import { PrefixHits } from '../../../../src/records/trace/prefix-hits.ts';
import { createTraceLines } from '../../../../src/records/trace/trace-lines.ts';
import { inArrivalOrder, mergeByEnd, readRequests } from '../../../../src/records/trace/write-trace.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzInput, type FuzzTarget, must, mustEqual, piecesOf, streamOf } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';
import { type GivenRequest, inOrder, merge, requestsOf, traceOf } from './expected-trace.ts';

/** A block of the trace is a block of the hashes. */
const BLOCK_TOKENS = 512;
const SIZES = { blockTokens: BLOCK_TOKENS, blockChars: 4 * BLOCK_TOKENS, charsPerToken: 4 };
/** One file; two files; one file of which one model is wanted; one file with requests that are held back for a moment. */
const FORMS = ['one', 'one', 'two', 'filtered', 'impatient'] as const;
const MODEL = 'm-1';
const WINDOW = 10_000;
const WORDS = ['gateway.ts', 'stringValue', 'intValue', 'values', 'm-1', 'spans', '2026-11-21T08:00:00Z'];
const NAMES = Object.fromEntries(Object.entries(RECORD_FIELDS).map(([field, { name }]) => [field, name]));

/** What `gateway export-trace` reads, and the trace that it makes. */
export const EXPORT_TRACE: FuzzTarget = {
  name: 'export-trace',
  reads: 'the files of records of `gateway export-trace`: one and several, with a filter',
  oracle:
    'nothing is thrown; the trace has the requests that JSON.parse finds, each once, in the order of their arrival, with the ids that a map of hashes gives; the shares of caches are shares',
  variants: FORMS.length,
  ciInputs: 5_000,
  generate: (random) => Buffer.from(Array.from({ length: random.below(4) }, () => line(random)).join('')),
  async check(input) {
    const { trace, counts, summary } = await exportTrace(input);
    const files = filesOf(input).map((file) => Buffer.concat(file).toString());
    const model = FORMS[input.variant] === 'filtered' ? MODEL : undefined;
    const given = files.map((text) => requestsOf(text, model));
    const brokenLines = given.reduce((sum, each) => sum + each.brokenLines, 0);
    const withoutTokens = given.reduce((sum, each) => sum + each.withoutTokens, 0);
    mustEqual('broken lines', counts.brokenLines, brokenLines);
    mustEqual('records without tokens', counts.withoutTokens, withoutTokens);
    const all = merge(given.map(({ requests }) => requests));
    const expected = inOrder(all);
    if (FORMS[input.variant] === 'impatient') mustRise(trace, all.length - counts.repeated);
    else {
      mustEqual('repeated records', counts.repeated, all.length - expected.length);
      mustEqual('the trace', trace, traceOf(expected, BLOCK_TOKENS));
      mustBeShares(summary, expected);
    }
    return expected.length > 0;
  },
  read: exportTrace,
};

async function exportTrace(input: FuzzInput) {
  const form = FORMS[input.variant];
  const counts = { repeated: 0, late: 0, brokenLines: 0, withoutTokens: 0 };
  const filter = form === 'filtered' ? { model: MODEL } : {};
  const files = filesOf(input).map((pieces) => readRequests(streamOf(pieces), filter, counts));
  const hits = new PrefixHits(BLOCK_TOKENS);
  const toLine = createTraceLines(SIZES);
  let trace = '';
  for await (const request of inArrivalOrder(mergeByEnd(files), form === 'impatient' ? 1 : WINDOW, counts)) {
    hits.add(request);
    trace += toLine(request);
  }
  return { trace, counts, summary: hits.summarize() };
}

/** The pieces of each file. */
function filesOf(input: FuzzInput): readonly (readonly Buffer[])[] {
  const pieces = piecesOf(input);
  if (FORMS[input.variant] !== 'two') return [pieces];
  const half = Math.floor(pieces.length / 2);
  return [pieces.slice(0, half), pieces.slice(half)];
}

function mustRise(trace: string, count: number): void {
  const lines = trace.split('\n').filter((each) => each !== '');
  mustEqual('the number of requests', lines.length, count);
  const times = lines.map((each): number => JSON.parse(each).timestamp);
  must(
    times.every((time, index) => time >= (times[index - 1] ?? 0)),
    'time runs backwards',
  );
}

function mustBeShares(
  { all, replicas }: ReturnType<PrefixHits['summarize']>,
  expected: readonly GivenRequest[],
): void {
  mustEqual('the requests of the summary', all.requests, expected.length);
  mustEqual(
    'its tokens',
    all.input_tokens,
    expected.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
  );
  for (const { possible_as_routed: routed, possible_shared: shared } of [all, ...replicas]) {
    must(routed >= 0 && routed <= shared && shared <= 1, `${routed} of ${shared} are no shares`);
  }
}

function line(random: Random): string {
  const spans = Array.from({ length: random.below(4) }, () => span(random));
  return `{"resourceSpans":[{"scopeSpans":[{"spans":[${spans.join(',')}]}]}]}\n`;
}

const TOKENS = ['0', '512', '513', '1024', '1500', '2048'];
const ODD_TOKENS = ['-1', '100000001', '9007199254740993', ' 7', '0x10', ''];
const HASHES = ['00112233aabbccdd', 'ffeeddccbbaa0011', '0123456789abcdef'];
const ODD_HASHES = ['', '0011', '00112233AABBCCDD', '00112233aabbccdx', '\u0130\u0130112233aabbccdd'];
const TIMES = ['2026-11-21T08:00:00.123Z', '2026-11-21T08:00:00.124Z', '2026-11-21T07:59:00Z'];
const ENDPOINTS = [...OPERATIONS.keys()];

function span(random: Random): string {
  const tokens = () => random.pick(random.chance(97) ? TOKENS : ODD_TOKENS);
  const hash = () => `{"stringValue":"${random.pick(random.chance(97) ? HASHES : ODD_HASHES)}"}`;
  const hashes = Array.from({ length: random.below(5) }, hash);
  const endpoint = random.chance(85) ? '/v1/chat/completions' : random.pick(ENDPOINTS);
  const members: readonly (readonly [field: string, type: string, json: string])[] = [
    ['request_id', 'stringValue', `"r-${random.below(20)}"`],
    ['trace_id', 'stringValue', '"0af7651916cd43dd8448eb211c80319c"'],
    ['ts', 'stringValue', `"${random.pick(TIMES)}"`],
    ['endpoint', 'stringValue', `"${endpoint}"`],
    ['e2e_ms', 'doubleValue', random.chance(95) ? String(random.below(5)) : random.pick(['1e400', '-5'])],
    ['status', 'intValue', '"200"'],
    ['stream', 'boolValue', 'true'],
    ['replica', 'stringValue', `"vllm-${random.below(2)}"`],
    ['model', 'stringValue', `"m-${random.below(2)}"`],
    ['prompt_tokens', 'intValue', `"${tokens()}"`],
    ['completion_tokens', 'intValue', `"${tokens()}"`],
    ['cached_tokens', 'intValue', '"0"'],
    ['prompt_chars', 'intValue', '"4096"'],
    ['prefix_hashes', 'arrayValue', `{"values":[${hashes.join(',')}]}`],
  ];
  const attributes = members.map(([field, type, json]) => {
    const value = random.chance(99) ? `{"${type}":${json}}` : jsonText(random, WORDS, 2);
    return `{"key":"${NAMES[field]}","value":${value}}`;
  });
  return `{"attributes":[${attributes.join(',')}]}`;
}
