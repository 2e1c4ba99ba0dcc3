import type { Program } from '#testkit/interleaving/interleavings.ts';
import { allocateSharedState, SharedState } from '../../../../src/replicas/shared/shared-state.ts';
import {
  allocateStoredResponses,
  StoredResponses,
} from '../../../../src/replicas/stored-responses/response-table.ts';

/** Two workers, one replica with one GPU. */
const WORKERS = 2;
const SLOT = 0;
const GPUS = 1;
/** A millisecond costs 1. */
const HOUR_PRICE = 3_600_000;

/** When each worker's lease begins, in milliseconds of the clock that they share. */
export const BEGIN_MS = [10, 20] as const;

/** The state of two workers in this memory, at this time. */
export const stateIn = (buffer: SharedArrayBuffer, nowMs = 0) =>
  new SharedState({ buffer, workerCount: WORKERS }, () => nowMs);

/** The responses in this memory, at a time that does not pass. */
export const responsesIn = (buffer: SharedArrayBuffer) => new StoredResponses(buffer, () => 1_000_000);

/** What is noted of a response, so that each part tells which version it belongs to. */
export const originOf = (version: number) => ({
  seed: 7_000 + version,
  model: `model-${version}`,
  calledAs: `name-${version}`,
  tenant: 'tenant',
});

const stateBytes = allocateSharedState(WORKERS).buffer.byteLength;
const responsesBytes = allocateStoredResponses().byteLength;

const bothWorkers = (run: (memory: SharedArrayBuffer, worker: number) => readonly number[]) =>
  [0, 1].map((worker) => (memory: SharedArrayBuffer) => run(memory, worker));

export const LAST_PLACE: Program = {
  name: 'two requests and the last place of a replica',
  memoryBytes: stateBytes,
  threads: bothWorkers((memory, worker) => [Number(stateIn(memory).beginInflight(worker, SLOT, 1))]),
};

export const BEGIN_AND_END: Program = {
  name: 'requests that begin and end',
  memoryBytes: stateBytes,
  threads: bothWorkers((memory, worker) => {
    const state = stateIn(memory);
    state.beginInflight(worker, SLOT, null);
    state.endInflight(worker, SLOT);
    return [];
  }),
};

export const LAST_WAIT: Program = {
  name: 'two requests and one place to wait',
  memoryBytes: stateBytes,
  threads: bothWorkers((memory, worker) => [stateIn(memory).waiting.join(worker, 1) ?? 0]),
};

const health = (coolDownMs: number) => ({
  passive: true,
  active: false,
  failures: 1,
  coolDownMs,
  frozenAfterMs: null,
  peers: null,
});

export const ONE_RETRY: Program = {
  name: 'two requests that could try a replica that fails',
  memoryBytes: stateBytes,
  prepare(memory) {
    new Int32Array(memory).fill(0);
    const table = stateIn(memory).health;
    table.configure(health(0));
    table.noteRefused(SLOT);
  },
  threads: bothWorkers((memory) => {
    const table = stateIn(memory).health;
    table.configure(health(3_600_000));
    return [Number(table.claimRetry(SLOT, 0))];
  }),
};

export const GPU_LEASES: Program = {
  name: 'two leases of one replica',
  memoryBytes: stateBytes,
  prepare(memory) {
    new Int32Array(memory).fill(0);
    stateIn(memory).gpuTimes.configure(SLOT, { gpuCount: GPUS, gpuHourPrice: HOUR_PRICE });
  },
  threads: BEGIN_MS.map((nowMs, worker) => (memory) => {
    // Whole milliseconds: they fit a result.
    return [stateIn(memory, nowMs).gpuTimes.begin(worker, SLOT).time];
  }),
};

const noteVersion = (version: number) => (memory: SharedArrayBuffer) => {
  responsesIn(memory).note('resp_1', originOf(version));
  return [];
};

/** Reads a response as a thread would; nothing if it is not known. */
function readResponse(memory: SharedArrayBuffer): readonly number[] {
  const found = responsesIn(memory).find('resp_1');
  return found === null ? [] : [found.seed, ...found.model, ...found.calledAs, ...found.owner];
}

export const WRITER_AND_READER: Program = {
  name: 'a response that is noted anew while another thread reads it',
  memoryBytes: responsesBytes,
  prepare(memory) {
    new Int32Array(memory).fill(0);
    responsesIn(memory).note('resp_1', originOf(1));
  },
  threads: [noteVersion(2), readResponse],
};

export const TWO_WRITERS: Program = {
  name: 'one response that two threads note',
  memoryBytes: responsesBytes,
  threads: [noteVersion(1), noteVersion(2)],
};

export const PROGRAMS: readonly Program[] = [
  ...[LAST_PLACE, BEGIN_AND_END, LAST_WAIT, ONE_RETRY],
  ...[GPU_LEASES, WRITER_AND_READER, TWO_WRITERS],
];
