import type { ConditionBoard, Finding, Producer } from '#conditions';
import type { RequestRecord } from '#otel/record/registry';
import { readLimit } from '#shared-memory';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { guarded } from '../composition/observe-record.ts';
import { countOpenFiles, readMaxFiles } from '../serving/file-descriptors.ts';
import { toWorkerCount } from '../serving/settings.ts';
import { RecentCount } from './recent-count.ts';

interface Watched {
  readonly replicas: { readonly registry: { readonly waiting: number } };
  readonly dataPlane: Pick<DataPlane, 'serving'>;
}

const nowMs = () => performance.now();

/** Tells the board of what the machine and the process lack: room, time, and a steady clock. */
export function addMachineConditions(composition: Composition, { replicas, dataPlane }: Watched): void {
  const { board, collaborators, events, inEffect, memory, parts } = composition;
  const overload = createOverloadProducer(nowMs);
  events.on(
    'record',
    guarded(({ record }) => overload.note(record), collaborators.log),
  );
  board.add(overload.produce);
  const maxFiles = readMaxFiles();
  board.add(
    createRoomProducer({
      waiting: () => ({ now: replicas.registry.waiting, limit: inEffect.config.limits.queue }),
      buffered: () => readLimit(memory.buffered),
      connections: () => readLimit(memory.connections),
      descriptors() {
        const now = maxFiles === null ? null : countOpenFiles();
        return now === null || maxFiles === null ? null : { now, limit: maxFiles };
      },
    }),
  );
  board.add(createThreadProducer(toLoopTimes(composition, dataPlane), nowMs));
  parts.add('watches', new ClockWatch(board, { nowMs, epochMs: () => Date.now() }));
}

/** The times of all threads. A single worker is the main thread. */
function toLoopTimes({ inEffect }: Composition, { serving }: Watched['dataPlane']) {
  const isSingle = toWorkerCount(inEffect.config) === 1;
  return () => {
    const { active, idle } = performance.eventLoopUtilization();
    const workers = isSingle ? [] : serving.eventLoopTimes();
    return [
      { thread: 'main', activeMs: active, idleMs: idle },
      ...workers.map(({ worker, ...times }) => ({ thread: `worker ${worker}`, ...times })),
    ];
  };
}

interface Clocks {
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly epochMs: () => number;
}

const LOOK_EVERY_MS = 1_000;
/** Time servers correct a clock by less in a second. */
const STEP_MS = 2_000;

/** Compares the wall clock with the monotonic one every second, and raises a condition when it was set. */
export class ClockWatch {
  readonly #board: Pick<ConditionBoard, 'raise' | 'clear'>;
  readonly #clocks: Clocks;
  /** The wall clock, less the monotonic one. */
  #offsetMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(board: Pick<ConditionBoard, 'raise' | 'clear'>, clocks: Clocks) {
    this.#board = board;
    this.#clocks = clocks;
    this.#offsetMs = this.#readOffset();
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  look(): void {
    const stepMs = this.#readOffset() - this.#offsetMs;
    this.#offsetMs += stepMs;
    if (Math.abs(stepMs) < STEP_MS) return;
    const step = Math.round(Math.abs(stepMs) / 1_000);
    const figures = { direction: stepMs > 0 ? 'forward' : 'back', step };
    // Each step is one of its own, with its line in the log.
    this.#board.clear('clock_stepped', '');
    this.#board.raise({ id: 'clock_stepped', subject: '', figures });
  }

  #readOffset(): number {
    return this.#clocks.epochMs() - this.#clocks.nowMs();
  }
}

/** For so long after the last refused request, the gateway counts as overloaded. */
const LASTS_SECONDS = 10;

const REASONS = {
  buffers: 'the memory for request bodies is used up (`limits.buffered`)',
  queue: 'no replica has room (`max_inflight`, `limits.queue`)',
} as const;

/** What looks at records: a function that is called with each of them, and the producer that tells what they show. */
interface RecordProducer {
  readonly note: (record: Readonly<RequestRecord>) => void;
  readonly produce: Producer;
}

/** Requests that the gateway has refused for want of room. `nowMs`: monotonic milliseconds. */
export function createOverloadProducer(nowMs: () => number): RecordProducer {
  const refusals = new RecentCount(nowMs);
  let reason: string = REASONS.queue;
  return {
    note({ error_type: type, model }) {
      if (type !== 'overloaded') return;
      refusals.add();
      // Without room for its body, the model of a request was not read.
      reason = model === undefined ? REASONS.buffers : REASONS.queue;
    },
    *produce() {
      if (refusals.inLast(LASTS_SECONDS) === 0) return;
      yield { id: 'overloaded', subject: '', figures: { refused: refusals.inLast(60), reason } };
    },
  };
}

/** How long the event loop of a thread was active and idle since the thread started. */
interface LoopTime {
  readonly thread: string;
  readonly activeMs: number;
  readonly idleMs: number;
}

/** The share of the time from which a thread counts as busy, and the time over which it is measured. */
const BUSY = 0.9;
const WINDOW_MS = 5_000;
/** Between two measurements. */
const INTERVAL_MS = 500;

/** Threads that are busy all the time. `nowMs`: monotonic milliseconds. */
export function createThreadProducer(times: () => readonly LoopTime[], nowMs: () => number): Producer {
  /** What was measured in the last window, oldest first. */
  let samples: { readonly atMs: number; readonly times: readonly LoopTime[] }[] = [];
  return function* (): Generator<Finding> {
    const atMs = nowMs();
    if (atMs - (samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) >= INTERVAL_MS)
      samples = [...samples, { atMs, times: times() }];
    // The oldest is at least a window old.
    while (atMs - (samples[1]?.atMs ?? atMs) >= WINDOW_MS) samples.shift();
    const oldest = samples[0];
    if (oldest === undefined || atMs - oldest.atMs < WINDOW_MS) return;
    for (const { thread, activeMs, idleMs } of samples.at(-1)?.times ?? []) {
      const before = oldest.times.find((each) => each.thread === thread);
      // A new thread of the same name has been active for less than the former one.
      if (before === undefined || activeMs < before.activeMs || idleMs < before.idleMs) continue;
      const active = activeMs - before.activeMs;
      const busy = active / (active + idleMs - before.idleMs);
      if (busy > BUSY) yield { id: 'event_loop_behind', subject: thread, figures: { busy } };
    }
  };
}

/** How much of a resource is used, and how much can be. */
interface Usage {
  readonly now: number;
  readonly limit: number;
}

/** What the gateway has only so much of. */
export interface RoomSources {
  /** Requests that wait for a replica. */
  readonly waiting: () => Usage;
  /** Bytes of request bodies. */
  readonly buffered: () => Usage;
  /** Connections of clients. */
  readonly connections: () => Usage;
  /** Open files and sockets of the process; null where the system does not say. */
  readonly descriptors: () => Usage | null;
}

/** The share of a limit from which it is nearly reached. */
const NEAR = 0.8;

/** Limits that are reached, or nearly. */
export function createRoomProducer(sources: RoomSources): Producer {
  return function* (): Generator<Finding> {
    const { now: waiting, limit } = sources.waiting();
    if (waiting > NEAR * limit) yield { id: 'waiting_long', subject: '', figures: { waiting, limit } };
    const { now: used, limit: bytes } = sources.buffered();
    if (used > NEAR * bytes) yield { id: 'buffers_near_limit', subject: '', figures: { used, limit: bytes } };
    yield* connectionFindings(sources.connections());
    const descriptors = sources.descriptors();
    if (descriptors !== null && descriptors.now > NEAR * descriptors.limit) {
      const figures = { open: descriptors.now, limit: descriptors.limit };
      yield { id: 'descriptors_near_limit', subject: '', figures };
    }
  };
}

function* connectionFindings({ now: open, limit }: Usage): Generator<Finding> {
  if (open >= limit) yield { id: 'connections_full', subject: '', figures: { limit } };
  else if (open > NEAR * limit) yield { id: 'connections_near_limit', subject: '', figures: { open, limit } };
}
