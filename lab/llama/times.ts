import { setTimeout as sleep } from 'node:timers/promises';
import type { Served } from '../served-process.ts';
import { QUESTION } from './answers.ts';
import { type Bench, type GatewayRecord, median, percentile, StreamClock } from './client.ts';
import { countBusySlots } from './engine.ts';
import type { Report } from './report.ts';

const TOLERANCE_MS = 5;
const STREAMS = 30;

/** Time to first token and gaps: the record's against those that the client of the same request measured. */
export async function checkTimes(bench: Bench, report: Report): Promise<void> {
  report.section(
    `Times of ${STREAMS} streams: the median of the gateway's, and of the client's own measurement`,
  );
  const rows = [];
  // The first few teach both processes what to compile.
  for (let i = -5; i < STREAMS; i++) {
    const row = await measureStream(bench, i);
    if (i >= 0) rows.push(row);
  }
  for (const [name, key] of [
    ['ttft_ms', 'ttft'],
    ['gap_p50_ms', 'gapP50'],
    ['gap_p95_ms', 'gapP95'],
  ] as const) {
    const recorded = rows.map(({ record }) => Number(record[name]));
    const measured = rows.map((row) => row[key]);
    report.near(name, median(recorded), median(measured), TOLERANCE_MS);
    const differences = recorded.map((ms, index) => ms - (measured[index] ?? Number.NaN));
    const at = (p: number) => percentile(differences, p).toFixed(2);
    report.tell(`per request: least ${at(0)}, p50 ${at(0.5)}, p95 ${at(0.95)}, most ${at(1)} ms`);
  }
  const isInOrder = rows.every(({ record }) => Number(record.ttft_ms) < Number(record.e2e_ms));
  report.holds('ttft_ms is below e2e_ms in every record', isInOrder);
  const isAfterPrompt = rows.every(
    ({ record }) => Number(record.ttft_ms) >= Number(record['timings.prompt_ms']),
  );
  report.holds("ttft_ms is not below the engine's own prompt_ms in any record", isAfterPrompt);
}

async function measureStream(
  { openai, recordOf }: Bench,
  index: number,
): Promise<{ ttft: number; gapP50: number; gapP95: number; record: GatewayRecord }> {
  const clock = new StreamClock();
  const { data, response } = await openai.chat.completions
    .create({
      model: 'tiny',
      messages: [{ role: 'system', content: `Stream ${index}.` }, ...QUESTION],
      max_tokens: 48,
      stream: true,
    })
    .withResponse();
  for await (const { choices } of data) if (choices[0]?.delta.content) clock.noteOutput();
  const { ttftMs, gapsMs } = clock.finish();
  const record = await recordOf(response);
  return { ttft: ttftMs, gapP50: median(gapsMs), gapP95: percentile(gapsMs, 0.95), record };
}

const LONG_ANSWER_TOKENS = 1500;

/** A client that leaves in mid-stream: the engine's slot becomes idle long before the answer would have ended. */
export async function checkAbort({ openai, recordOf }: Bench, engine: Served, report: Report): Promise<void> {
  report.section('A client that leaves in mid-stream');
  const before = await countPredicted(engine);
  const { data, response } = await openai.chat.completions
    .create({
      model: 'tiny',
      messages: QUESTION,
      max_tokens: LONG_ANSWER_TOKENS,
      stream: true,
      ...{ ignore_eos: true },
    })
    .withResponse();
  let chunkCount = 0;
  for await (const _ of data) if (++chunkCount === 20) break;
  const leftMs = performance.now();
  let busy = await countBusySlots(engine);
  report.tell(`slots at work right after: ${busy}`);
  while (busy > 0) {
    await sleep(5);
    busy = await countBusySlots(engine);
  }
  report.tell(`idle after ${(performance.now() - leftMs).toFixed(0)} ms`);
  const predicted = (await countPredicted(engine)) - before;
  report.holds(
    `the engine made ${predicted} of ${LONG_ANSWER_TOKENS} tokens`,
    predicted < LONG_ANSWER_TOKENS / 2,
  );
  const { status, error_type, truncated, stream } = await recordOf(response);
  report.same(
    'status, error_type, truncated, stream',
    [status, error_type, truncated, stream],
    [200, 'client_closed', true, true],
  );
}

async function countPredicted({ url }: Served): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^llamacpp:tokens_predicted_total (\S+)/m.exec(metrics)?.[1]);
}

const SEQUENTIAL_REQUESTS = 250;
/** Around the 5 s after which llama.cpp closes an idle connection. */
const PAUSES_MS = [4_000, 4_900, 4_980, 5_000, 5_020, 5_100, 6_000];

/** llama.cpp closes connections after 100 requests and after 5 s without one: no request fails of it. */
export async function checkKeepAlive({ openai, recordOf }: Bench, report: Report): Promise<void> {
  report.section('Connections that the engine closes: after 100 requests, after 5 s');
  const ask = async () => {
    const { response } = await openai.completions
      .create({ model: 'tiny', prompt: 'x', max_tokens: 1 })
      .withResponse();
    return await recordOf(response);
  };
  const records: GatewayRecord[] = [];
  for (let i = 0; i < SEQUENTIAL_REQUESTS; i++) records.push(await ask());
  for (const pauseMs of PAUSES_MS) {
    await sleep(pauseMs);
    records.push(await ask());
  }
  report.same('statuses', [...new Set(records.map(({ status }) => status))], [200]);
  const repeated = records.filter(({ attempts }) => Number(attempts) > 1).length;
  report.tell(`${records.length} requests, ${repeated} of them repeated on a fresh connection`);
}
