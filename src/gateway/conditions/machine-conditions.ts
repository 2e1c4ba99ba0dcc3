import type { ConditionBoard } from '#conditions';
import { readLimit } from '#shared-memory';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { guarded } from '../composition/observe-record.ts';
import { countOpenFiles, readMaxFiles } from '../serving/file-descriptors.ts';
import { toWorkerCount } from '../serving/settings.ts';
import { createOverloadProducer } from './overload-conditions.ts';
import { createRoomProducer } from './room-conditions.ts';
import { createThreadProducer } from './thread-conditions.ts';

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
  readonly #board: Pick<ConditionBoard, 'raise'>;
  readonly #clocks: Clocks;
  /** The wall clock, less the monotonic one. */
  #offsetMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(board: Pick<ConditionBoard, 'raise'>, clocks: Clocks) {
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
    const offsetMs = this.#readOffset();
    const stepMs = offsetMs - this.#offsetMs;
    this.#offsetMs = offsetMs;
    if (Math.abs(stepMs) < STEP_MS) return;
    const figures = { direction: stepMs > 0 ? 'forward' : 'back', step: Math.abs(stepMs) / 1_000 };
    this.#board.raise({ id: 'clock_stepped', subject: '', figures });
  }

  #readOffset(): number {
    return this.#clocks.epochMs() - this.#clocks.nowMs();
  }
}
