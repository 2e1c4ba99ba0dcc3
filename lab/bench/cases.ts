import { readRssBytes } from '#testkit/programs/process-tree.ts';
import type { Case, Figure, Measurement, Sample } from './case.ts';
import { type Load, type Outcome, runLoad, startLoad } from './driver.ts';
import {
  CLIENTS,
  CPU_FIGURES,
  PROMPT_CHARS,
  toCpuSample,
  toEventsPerSecond,
  toLoad,
  toPacedLoad,
  writeBody,
} from './loads.ts';
import { MEMORY_CASES } from './memory-cases.ts';

const LARGE_BODY_BYTES = 20_000_000;
const LARGE_ALONE_MS = 500;
/** Longer than any case: this load ends when the streams have been measured. */
const LARGE_BESIDE_MS = 3_600_000;
/** An open loop begins with a rush of new connections. */
const OPEN_WARM_MS = 700;
/** An open loop is measured this many times as long: the p99 of one second is decided by its worst ten milliseconds. */
const OPEN_RUNS = 3;

/** Size of the mock replica's embeddings. */
export const EMBEDDINGS_BYTES = 30_000_000;

const DELAY_FIGURES: readonly Figure[] = [
  { key: 'p50Ms', title: 'event delay p50, ms', digits: 2 },
  { key: 'p99Ms', title: 'p99, ms', digits: 2 },
  { key: 'maxMs', title: 'worst, ms', digits: 1 },
];

/** All cases, in the order of the report. */
export const CASES: readonly Case[] = [
  closedCase('plain', `${CLIENTS} clients in a closed loop, a prompt of 2,000 characters, a JSON answer`, {
    isQuick: true,
  }),
  closedCase('burst', `${CLIENTS} clients in a closed loop, an answer streamed as 16 events at once`, {
    mark: '@@burst',
    isQuick: true,
  }),
  pacedCase(1, false),
  pacedCase(200, true),
  pacedCase(1000, false),
  pacedCase(4000, false),
  closedCase('prompt-100k', `${CLIENTS} clients in a closed loop, a prompt of 100,000 characters`, {
    promptChars: 100_000,
  }),
  {
    name: 'half-load',
    title: 'an open loop at half the throughput of the target: the latency that the target adds',
    figures: [
      { key: 'addedP50Us', title: 'added p50, µs', digits: 0 },
      { key: 'addedP99Us', title: 'added p99, µs', digits: 0 },
      { key: 'cpuUs', title: 'CPU per request, µs', digits: 0 },
      { key: 'ratePerSecond', title: 'requests/s', digits: 0 },
    ],
    reference: 'node-pipe',
    isQuick: true,
    measure: measureHalfLoad,
  },
  {
    name: 'large-body',
    title:
      'paced streams (200 × 50 events/s) beside one client that sends bodies of 20 MB, one after another',
    figures: [
      { key: 'maxMs', title: 'worst event delay, ms', digits: 1 },
      { key: 'p99Ms', title: 'p99, ms', digits: 2 },
      { key: 'largeCpuMs', title: 'CPU per large request, ms', digits: 1 },
    ],
    reference: 'node-pipe',
    isQuick: true,
    measure: measureLargeBody,
  },
  {
    name: 'embeddings-30m',
    title: 'two clients in a closed loop, embeddings of 30 MB',
    figures: [
      { key: 'cpuMs', title: 'CPU per request, ms', digits: 1 },
      { key: 'perSecond', title: 'requests/s', digits: 1 },
    ],
    reference: 'node-pipe',
    measure: async (measurement) => {
      const bodyFile = writeBody(measurement.folder, 'embeddings', PROMPT_CHARS);
      const outcome = await runLoad(measurement, {
        ...toLoad(measurement, bodyFile),
        path: '/v1/embeddings',
        connections: 2,
      });
      return {
        cpuMs: outcome.cpuUs / outcome.requests / 1000,
        perSecond: outcome.requests / outcome.seconds,
      };
    },
  },
  closedCase('replicas-64', 'as plain, before 64 replicas', { replicaCount: 64 }),
  closedCase('replicas-1000', 'as plain with 64 clients, before 1,000 replicas', {
    replicaCount: 1000,
    clients: 64,
    targets: ['gateway', 'node-pipe'],
  }),
  ...MEMORY_CASES,
  closedCase('collector-down', 'as plain, with the collector up and down', {
    reference: 'gateway',
    targets: ['gateway', 'gateway-collector-down'],
  }),
  closedCase('workers', 'as plain with 64 clients, one worker and two', {
    reference: 'gateway',
    targets: ['gateway', 'gateway-2-workers'],
    clients: 64,
  }),
  // Beside such a request, the CPU that load and replica take from the same cores is small.
  closedCase('workers-100k', 'as prompt-100k with 32 clients, one worker and two', {
    reference: 'gateway',
    targets: ['gateway', 'gateway-2-workers'],
    promptChars: 100_000,
    clients: 32,
  }),
];

interface ClosedOptions {
  readonly mark?: string;
  readonly promptChars?: number;
  readonly clients?: number;
  readonly reference?: string;
  readonly targets?: readonly string[];
  readonly replicaCount?: number;
  readonly isQuick?: boolean;
}

function closedCase(name: string, title: string, options: ClosedOptions): Case {
  const {
    mark = '',
    promptChars = PROMPT_CHARS,
    clients = CLIENTS,
    reference = 'node-pipe',
    ...rest
  } = options;
  return {
    ...rest,
    name,
    title,
    figures: CPU_FIGURES,
    reference,
    measure: async (measurement) => {
      const bodyFile = writeBody(measurement.folder, mark, promptChars);
      return toCpuSample(
        await runLoad(measurement, { ...toLoad(measurement, bodyFile), connections: clients }),
      );
    },
  };
}

/** The total of events per second is the same for every number of streams, so that µs per event show the cost of streams. */
function pacedCase(streams: number, isQuick: boolean): Case {
  const perStream = toEventsPerSecond(streams);
  return {
    name: `paced-${streams}`,
    title: `${streams.toLocaleString('en')} streams, ${perStream} events per second each`,
    figures: [
      { key: 'cpuUs', title: 'CPU per event, µs', digits: 1 },
      ...DELAY_FIGURES,
      { key: 'rssMb', title: 'memory, MB', digits: 0 },
    ],
    reference: 'node-pipe',
    isQuick,
    measure: async (measurement) => {
      const outcome = await runLoad(measurement, toPacedLoad(measurement, streams));
      const rssMb = readRssBytes(measurement.pid) / 1e6;
      return { cpuUs: outcome.cpuUs / outcome.events, ...toDelays(outcome), rssMb };
    },
  };
}

function toDelays({ p50Us, p99Us, maxUs }: Outcome) {
  return { p50Ms: p50Us / 1000, p99Ms: p99Us / 1000, maxMs: maxUs / 1000 };
}

async function measureHalfLoad(measurement: Measurement): Promise<Sample> {
  const load = toLoad(measurement, writeBody(measurement.folder, '', PROMPT_CHARS));
  const full = await runLoad(measurement, { ...load, runMs: Math.min(load.runMs, 500) });
  const ratePerSecond = full.requests / full.seconds / 2;
  // A request that finds no free connection waits, and its time counts from when it was due.
  const open: Load = { ...load, mode: 'open', connections: 64, warmMs: OPEN_WARM_MS, ratePerSecond };
  const through = await runLoad(measurement, {
    ...open,
    // V8 compiles again when requests come one by one: they take other branches.
    warmMs: Math.max(load.warmMs, OPEN_WARM_MS),
    runMs: load.runMs * OPEN_RUNS,
  });
  const direct = await runLoad({ ...measurement, port: measurement.replicaPort, pid: 0 }, open);
  return {
    addedP50Us: through.p50Us - direct.p50Us,
    addedP99Us: through.p99Us - direct.p99Us,
    cpuUs: through.cpuUs / through.requests,
    ratePerSecond,
  };
}

async function measureLargeBody(measurement: Measurement): Promise<Sample> {
  const bodyFile = writeBody(measurement.folder, '', LARGE_BODY_BYTES);
  const large: Load = { ...toLoad(measurement, bodyFile), connections: 1 };
  // Alone first: this shows their cost, and that they are not refused.
  const alone = await runLoad(measurement, { ...large, runMs: LARGE_ALONE_MS });
  await using _bodies = startLoad(measurement, { ...large, runMs: LARGE_BESIDE_MS });
  const outcome = await runLoad(measurement, toPacedLoad(measurement, 200));
  const { maxMs, p99Ms } = toDelays(outcome);
  return { maxMs, p99Ms, largeCpuMs: alone.cpuUs / alone.requests / 1000 };
}
