import { setTimeout as sleep } from 'node:timers/promises';
import { median, percentile } from '#testkit/programs/statistics.ts';
import { QUESTION } from './answers.ts';
import { type GatewayRecord, type RecordedClient, StreamClock } from './client.ts';
import { countBusySlots } from './engine.ts';
import type { Report } from './report.ts';

const TOLERANCE_MS = 5;
const STREAMS = 30;

/** Compares time to first token and gaps of the records with those that the clients measured. */
export async function checkTimes(client: RecordedClient, report: Report): Promise<void> {
  report.section(`Times of ${STREAMS} streams: medians of the gateway and of the client`);
  const rows = [];
  // The first few are a warm-up of both processes.
  for (let i = -5; i < STREAMS; i++) {
    const row = await measureStream(client, i);
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
    report.note(`per request: least ${at(0)}, p50 ${at(0.5)}, p95 ${at(0.95)}, most ${at(1)} ms`);
  }
  const isInOrder = rows.every(({ record }) => Number(record.ttft_ms) < Number(record.e2e_ms));
  report.holds('ttft_ms is below e2e_ms in every record', isInOrder);
  const isAfterPrompt = rows.every(
    ({ record }) => Number(record.ttft_ms) >= Number(record['timings.prompt_ms']),
  );
  report.holds("ttft_ms is not below the engine's own prompt_ms in any record", isAfterPrompt);
}

async function measureStream(
  { openai, recordOf }: RecordedClient,
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

/** A client leaves in mid-stream: the slot of the engine becomes idle long before the answer would have ended. */
export async function checkAbort(
  { openai, recordOf }: RecordedClient,
  engineUrl: string,
  report: Report,
): Promise<void> {
  report.section('A client leaves in mid-stream');
  const before = await countPredicted(engineUrl);
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
  let busy = await countBusySlots(engineUrl);
  report.note(`slots at work right after: ${busy}`);
  while (busy > 0) {
    await sleep(5);
    busy = await countBusySlots(engineUrl);
  }
  report.note(`idle after ${(performance.now() - leftMs).toFixed(0)} ms`);
  const predicted = (await countPredicted(engineUrl)) - before;
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

async function countPredicted(engineUrl: string): Promise<number> {
  const metrics = await (await fetch(`${engineUrl}/metrics`)).text();
  return Number(/^llamacpp:tokens_predicted_total (\S+)/m.exec(metrics)?.[1]);
}

const SEQUENTIAL_REQUESTS = 250;
/** Around the 5 s after which llama.cpp closes an idle connection. */
const PAUSES_MS = [4_000, 4_900, 4_980, 5_000, 5_020, 5_100, 6_000];

/** llama.cpp closes a connection after 100 requests and after 5 s without one; no request may fail because of that. */
export async function checkKeepAlive({ openai, recordOf }: RecordedClient, report: Report): Promise<void> {
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
  report.note(`${records.length} requests, ${repeated} of them repeated on a fresh connection`);
}
