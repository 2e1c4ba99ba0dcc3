import { readRssBytes } from '#testkit/programs/process-tree.ts';
import type { Case, Measurement, Sample } from './case.ts';
import { runLoad, startLoad } from './driver.ts';
import { CPU_FIGURES, PROMPT_CHARS, toCpuSample, toLoad, writeBody } from './loads.ts';

const IDLE_CONNECTIONS = 10_000;
/** More than the default capacity of the queue of records. */
const FILLING_REQUESTS = 20_000;
const FILLING_ROUND_MS = 1000;
const FILLING_ROUNDS = 30;

/** Memory of idle connections, and of records that no collector takes. */
export const MEMORY_CASES: readonly Case[] = [
  {
    name: 'idle-10000',
    title: `as plain, beside ${IDLE_CONNECTIONS.toLocaleString('en')} connections that have sent one request and are idle`,
    figures: [...CPU_FIGURES, { key: 'idleKb', title: 'memory per connection, KB', digits: 1 }],
    reference: 'node-pipe',
    measure: measureIdle,
  },
  {
    name: 'queue-full',
    title: `the collector is down: memory before, and after ${FILLING_REQUESTS.toLocaleString('en')} requests or more, when the queue of 16,384 records is full`,
    figures: [
      { key: 'fullMb', title: 'memory with a full queue, MB', digits: 0 },
      { key: 'emptyMb', title: 'memory before, MB', digits: 0 },
      { key: 'requests', title: 'requests', digits: 0 },
    ],
    reference: 'gateway-collector-down',
    targets: ['gateway-collector-down'],
    rounds: 1,
    measure: measureFullQueue,
  },
];

async function measureIdle(measurement: Measurement): Promise<Sample> {
  const load = toLoad(measurement, writeBody(measurement.folder, '', PROMPT_CHARS));
  await runLoad(measurement, { ...load, runMs: 200 }); // memory without them
  const rssBefore = readRssBytes(measurement.pid);
  await using idle = startLoad(measurement, { ...load, mode: 'idle', connections: IDLE_CONNECTIONS });
  await idle.nextLine();
  const idleKb = (readRssBytes(measurement.pid) - rssBefore) / IDLE_CONNECTIONS / 1000;
  const sample = toCpuSample(await runLoad(measurement, { ...load, warmMs: 300 }));
  return { ...sample, idleKb };
}

async function measureFullQueue(measurement: Measurement): Promise<Sample> {
  const load = toLoad(measurement, writeBody(measurement.folder, '', PROMPT_CHARS));
  const warm = await runLoad(measurement, { ...load, runMs: 200 });
  const emptyMb = readRssBytes(measurement.pid) / 1e6;
  let { requests } = warm;
  for (let round = 0; requests < FILLING_REQUESTS; round++) {
    if (round === FILLING_ROUNDS) throw new Error(`only ${requests} requests in ${round} rounds`);
    requests += (await runLoad(measurement, { ...load, warmMs: 0, runMs: FILLING_ROUND_MS })).requests;
  }
  return { emptyMb, fullMb: readRssBytes(measurement.pid) / 1e6, requests };
}
